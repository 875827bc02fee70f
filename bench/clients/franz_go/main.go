// franz-go as it is, as the package says.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const interval = 5 * time.Millisecond

var printing sync.Mutex

func main() {
	bootstrap, topic, mode, argument := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	options := []kgo.Opt{kgo.SeedBrokers(strings.Split(bootstrap, ",")...)}
	if mode == "write" {
		write(options, topic, argument)
	} else {
		commit(options, topic, argument)
	}
}

func write(options []kgo.Opt, topic, argument string) {
	var partitions []int32
	for _, text := range strings.Split(argument, ",") {
		partition, err := strconv.ParseInt(text, 10, 32)
		check(err)
		partitions = append(partitions, int32(partition))
	}
	client, err := kgo.NewClient(append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	check(err)
	for range time.Tick(interval) {
		for _, partition := range partitions {
			record := &kgo.Record{Topic: topic, Partition: partition, Value: make([]byte, 20)}
			client.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
				if err == nil {
					tell(fmt.Sprintf("ack %d", partition))
				}
			})
		}
	}
}

func commit(options []kgo.Opt, topic, group string) {
	client, err := kgo.NewClient(append(options,
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit())...)
	check(err)
	for {
		waiting, cancel := context.WithTimeout(context.Background(), interval)
		read := client.PollFetches(waiting)
		cancel()
		if read.NumRecords() > 0 {
			if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
				log.Print(err)
			} else {
				tell("commit")
			}
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func tell(event string) {
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(event)
}
