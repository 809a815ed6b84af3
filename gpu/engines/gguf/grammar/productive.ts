import type { GrammarPart, RuleMap, Sequence } from './rules.ts'

/** Returns the rules that a sequence refers to; `needed` omits parts that may be repeated zero times. */
export function referred(sequence: Sequence, needed = false): string[] {
  const names: string[] = []
  for (const part of sequence) {
    if (typeof part === 'string') continue
    if (part.kind === 'rule') names.push(part.rule)
    else if (part.kind === 'repeat' && !(needed && part.min === 0)) names.push(...referred([part.of], needed))
  }
  return names
}

/**
 * Returns the rules that are reachable from `from`, without alternatives that never end, such as an object that must
 * contain another one of the same kind: a model that began one could not finish. Rules without remaining alternatives
 * are omitted. A step processes one rule.
 */
export function* productiveRules(rules: RuleMap, from: Iterable<string>): Generator<void, RuleMap> {
  const names = [...from]
  const finite = yield* finiteRules(rules, names)
  const reached = new Set(names.filter(name => finite.has(name)))
  const made = new Map<string, Sequence[]>()
  for (const name of reached) {
    const alternatives = rules
      .get(name)!
      .filter(sequence => referred(sequence, true).every(other => finite.has(other)))
      .map(sequence => sequence.filter((part: GrammarPart) => referred([part]).every(other => finite.has(other))))
    made.set(name, alternatives)
    for (const sequence of alternatives) for (const other of referred(sequence)) reached.add(other)
    yield
  }
  return made
}

/**
 * Returns the rules reachable from `from` that match some text: those with an alternative that needs only such rules.
 * Other rules are not processed, because this runs for each of many tools with the rules of all tools before it.
 */
function* finiteRules(rules: RuleMap, from: readonly string[]): Generator<void, ReadonlySet<string>> {
  const finite = new Set<string>()
  const waiting = new Map<string, { name: string; missing: number }[]>()
  // Iteration over a Set includes entries that are added meanwhile.
  const reached = new Set(from)
  for (const name of reached) {
    for (const sequence of rules.get(name)!) {
      for (const other of referred(sequence)) reached.add(other)
      const needs = new Set(referred(sequence, true))
      const entry = { name, missing: needs.size }
      if (needs.size === 0) finite.add(name)
      for (const other of needs) {
        const entries = waiting.get(other)
        if (entries) entries.push(entry)
        else waiting.set(other, [entry])
      }
    }
    yield
  }
  for (const name of finite)
    for (const entry of waiting.get(name) ?? []) if (--entry.missing === 0) finite.add(entry.name)
  return finite
}
