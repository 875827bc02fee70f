"""The strongly connected components of a graph: Tarjan's algorithm, without recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping


def strong_components(
    graph: Mapping[int, Mapping[int, int]], wants: Callable[[int], object]
) -> Iterator[frozenset[int]]:  # fmt: skip
    """Those of more than one node. `graph` has by node its targets with a kind; edges count whose kind `wants` likes.
    Source: R. Tarjan, Depth-first search and linear graph algorithms (1972)."""
    indices: dict[int, int] = {}
    lowest: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in graph:
        if root in indices:
            continue
        indices[root] = lowest[root] = len(indices)
        stack.append(root)
        on_stack.add(root)
        path = [(root, iter(graph[root].items()))]
        while path:
            node, edges = path[-1]
            for target, kind in edges:
                if not wants(kind):
                    continue
                if target not in indices:
                    indices[target] = lowest[target] = len(indices)
                    stack.append(target)
                    on_stack.add(target)
                    path.append((target, iter(graph[target].items())))
                    break
                if target in on_stack:
                    lowest[node] = min(lowest[node], indices[target])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == indices[node]:
                    component: list[int] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    if len(component) > 1:
                        yield frozenset(component)
