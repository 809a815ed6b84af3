import { intersection, type Ranges } from './characters.ts'
import { referred } from './productive.ts'
import type { Budget, RuleMap, Sequence } from './rules.ts'

/** How an alternative may begin, and whether any rule follows. */
interface Opening {
  begins: string | Ranges
  goesOn: boolean
}

/**
 * Estimates how many readings of one text llama.cpp must follow at once, at most. It keeps a stack for each, so a
 * grammar that doubles them with every bracket, such as a list of this or a list of that, takes all memory within some
 * thirty brackets. Infinity where they grow with the depth of the text. Alternatives of the rules in `distinct` are
 * known to begin differently. A step looks at one group of rules.
 */
export function* ruleWidth(rules: RuleMap, distinct: ReadonlySet<string>, budget: Budget): Generator<void, number> {
  const openings = openOpenings(rules, budget)
  const width = new Map<string, number>()
  const recursive = new Set<string>()

  for (const component of componentsOf(rules, referred)) {
    const own = new Set(component)
    const outside = (sequence: Sequence) => referred(sequence).filter(name => !own.has(name))
    const inside = (sequence: Sequence) => referred(sequence).some(name => own.has(name))
    const within = (sequence: Sequence) => Math.max(1, ...outside(sequence).map(name => width.get(name)!))
    const recurs = (sequence: Sequence) => inside(sequence) || outside(sequence).some(name => recursive.has(name))
    let most = 1
    let aside = 0
    for (const name of component) {
      const alternatives = rules.get(name)!
      most = Math.max(most, ...alternatives.map(within))
      if (alternatives.length < 2 || distinct.has(name)) continue
      const begins = alternatives.map(openings.of)
      for (const [at, alternative] of alternatives.entries()) {
        const alike = alternatives.filter((_, other) => other !== at && overlap(begins[at]!, begins[other]!, budget))
        if (alike.length === 0) continue
        if (inside(alternative) && alike.some(recurs)) return Number.POSITIVE_INFINITY
        const together = alike.reduce((sum, other) => sum + within(other), within(alternative))
        if (inside(alternative)) aside += together
        else most = Math.max(most, together)
      }
      if (alternatives.some(recurs)) recursive.add(name)
    }
    if (component.some(name => rules.get(name)!.some(recurs))) for (const name of component) recursive.add(name)
    for (const name of component) width.set(name, most + aside)
    yield
  }
  return Math.max(1, ...width.values())
}

/**
 * Returns the steps that llama.cpp takes to search for left-recursive rules: it follows every path along first parts,
 * also several times to the same rule.
 */
export function stepsToCheck(rules: RuleMap): number {
  const known = new Map<string, number>()
  const of = (name: string): number => {
    const found = known.get(name)
    if (found !== undefined) return found
    known.set(name, Number.POSITIVE_INFINITY)
    let steps = 1
    for (const sequence of rules.get(name)!)
      for (const part of sequence) {
        for (const other of referred([part])) steps += of(other)
        if (typeof part === 'string' || part.kind !== 'repeat' || part.min > 0) break
      }
    known.set(name, steps)
    return steps
  }
  return [...rules.keys()].reduce((sum, name) => sum + of(name), 0)
}

function openOpenings(rules: RuleMap, budget: Budget) {
  const known = new Map<string, readonly Opening[]>()
  const ofRule = (name: string): readonly Opening[] => {
    const found = known.get(name) ?? rules.get(name)!.flatMap(of)
    known.set(name, found)
    budget.steps(found.length)
    return found
  }
  const of = (sequence: Sequence): readonly Opening[] => {
    const [part, ...rest] = sequence
    if (part === undefined) return []
    const goesOn = referred(rest).length > 0
    if (typeof part === 'string') return [{ begins: part, goesOn }]
    if (part.kind === 'set') return [{ begins: part.set, goesOn }]
    if (part.kind === 'rule') return ofRule(part.rule).map(one => ({ ...one, goesOn: one.goesOn || goesOn }))
    const goesOnAgain = goesOn || referred([part.of]).length > 0
    const repeated = of([part.of]).map(one => ({ ...one, goesOn: one.goesOn || goesOnAgain }))
    return part.min > 0 ? repeated : [...repeated, ...of(rest)]
  }
  return { of }
}

/** Whether some text is a beginning of both and continues in both. Readings that end at once cannot multiply. */
function overlap(left: readonly Opening[], right: readonly Opening[], budget: Budget): boolean {
  budget.steps(left.length * right.length)
  return left.some(a => a.goesOn && right.some(b => b.goesOn && alike(a.begins, b.begins)))
}

function alike(a: Opening['begins'], b: Opening['begins']): boolean {
  if (typeof a === 'string' && typeof b === 'string') return a.startsWith(b) || b.startsWith(a)
  return intersection(firstOf(a), firstOf(b)).length > 0
}

const firstOf = (begins: Opening['begins']): Ranges =>
  typeof begins === 'string' ? [[begins.codePointAt(0)!, begins.codePointAt(0)!]] : begins

/**
 * Returns the rules in strongly connected groups; a group comes after all groups that it refers to.
 * Source: Tarjan, Depth-first search and linear graph algorithms (1972), without recursion.
 */
function* componentsOf(rules: RuleMap, referred: (sequence: Sequence) => string[]): Generator<string[], void> {
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
