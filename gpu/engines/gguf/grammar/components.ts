import type { RuleMap, Sequence } from './rules.ts'

/**
 * Returns the rules in strongly connected groups; a group comes after all groups that it refers to.
 * Source: Tarjan, Depth-first search and linear graph algorithms (1972), without recursion.
 */
export function* componentsOf(rules: RuleMap, referred: (sequence: Sequence) => string[]): Generator<string[], void> {
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const open: string[] = []
  const isOpen = new Set<string>()
  for (const start of rules.keys()) {
    if (order.has(start)) continue
    const path: { name: string; next: Iterator<string> }[] = []
    const enter = (name: string) => {
      order.set(name, order.size)
      lowest.set(name, order.get(name)!)
      open.push(name)
      isOpen.add(name)
      path.push({ name, next: new Set(rules.get(name)!.flatMap(sequence => referred(sequence))).values() })
    }
    const lower = (name: string, to: number) => lowest.set(name, Math.min(lowest.get(name)!, to))
    enter(start)
    while (path.length > 0) {
      const { name, next } = path.at(-1)!
      const { value, done } = next.next()
      if (!done) {
        if (!order.has(value)) enter(value)
        else if (isOpen.has(value)) lower(name, order.get(value)!)
        continue
      }
      path.pop()
      const parent = path.at(-1)
      if (parent) lower(parent.name, lowest.get(name)!)
      if (lowest.get(name) !== order.get(name)) continue
      const component = open.splice(open.lastIndexOf(name))
      for (const member of component) isOpen.delete(member)
      yield component
    }
  }
}
