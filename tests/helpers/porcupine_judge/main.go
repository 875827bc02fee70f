// Asks Porcupine whether histories are linearizable: JSON in, a list of booleans out.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

type step struct {
	Invoked  int64
	Returned *int64
	Kind     string
	Argument any
	Value    any
}

type history struct {
	Model string
	Steps []step
}

// States are text: "none" for no value and no topic.
const none = "none"

func text(value any) string {
	if value == nil {
		return none
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

// Whether the step can have had that outcome in the state, and the state after it.
func register(state string, s step) (bool, string) {
	if s.Kind == "write" {
		return true, text(s.Argument)
	}
	return text(s.Argument) == state, state
}

// A topic is "partitions|key=value|key=value", its keys sorted.
func topic(state string, s step) (bool, string) {
	if state == none {
		switch s.Kind {
		case "create":
			made := fmt.Sprint(int(s.Argument.(float64)))
			for _, pair := range s.Value.([]any) {
				made = set(made, pair.([]any)[0].(string), text(pair.([]any)[1]))
			}
			return true, made
		case "missing":
			return true, state
		case "describe":
			return s.Argument == nil, state
		}
		return false, state
	}
	var partitions int
	fmt.Sscan(strings.Split(state, "|")[0], &partitions)
	switch s.Kind {
	case "delete":
		return true, none
	case "grow":
		total := int(s.Argument.(float64))
		rest := state[strings.Index(state+"|", "|"):]
		return total > partitions, fmt.Sprint(total) + rest
	case "set":
		return true, set(state, s.Argument.(string), text(s.Value))
	case "exists":
		return true, state
	case "not-larger":
		return int(s.Argument.(float64)) <= partitions, state
	case "describe":
		return s.Argument != nil && int(s.Argument.(float64)) == partitions, state
	case "get":
		return get(state, s.Argument.(string)) == text(s.Value), state
	}
	return false, state
}

func get(state, key string) string {
	for _, field := range strings.Split(state, "|")[1:] {
		if strings.HasPrefix(field, key+"=") {
			return field[len(key)+1:]
		}
	}
	return text("(unset)")
}

func set(state, key, value string) string {
	fields := strings.Split(state, "|")
	kept := []string{key + "=" + value}
	for _, field := range fields[1:] {
		if !strings.HasPrefix(field, key+"=") {
			kept = append(kept, field)
		}
	}
	sort.Strings(kept)
	return fields[0] + "|" + strings.Join(kept, "|")
}

func main() {
	var histories []history
	if err := json.NewDecoder(os.Stdin).Decode(&histories); err != nil {
		panic(err)
	}
	rules := map[string]func(string, step) (bool, string){"register": register, "topic": topic}
	answers := make([]bool, 0, len(histories))
	for _, h := range histories {
		rule := rules[h.Model]
		model := porcupine.Model{
			Init: func() any { return none },
			Step: func(state, input, _ any) (bool, any) {
				s := input.(step)
				possible, after := rule(state.(string), s)
				// Of an unknown outcome: it did not take place, or not yet.
				if !possible && s.Returned == nil {
					return true, state
				}
				return possible, after
			},
		}
		operations := make([]porcupine.Operation, 0, len(h.Steps))
		for _, s := range h.Steps {
			returned := int64(math.MaxInt64)
			if s.Returned != nil {
				returned = *s.Returned
			}
			operations = append(operations, porcupine.Operation{Input: s, Call: s.Invoked, Return: returned})
		}
		answers = append(answers, porcupine.CheckOperations(model, operations))
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}
