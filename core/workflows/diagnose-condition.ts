import { type Condition, ConditionFault, conditionFault, conditionsIn, hasPattern, holds } from '../dag/condition.ts'
import type { WorkflowNode } from '../dag/definition.ts'
import { Failure } from '../failure.ts'
import { jsonType, type Kinds, kindsText, mayFit } from '../schemas/schema-walk.ts'
import { referencesIn, referencesOfNode } from './bind.ts'
import type { NodeContext } from './diagnose-node.ts'
import { suggested } from './diagnostics.ts'
import type { Graph } from './graph.ts'
import { defaultReference } from './optional-results.ts'
import { isOfResult, ReferenceFault, referenceText } from './references.ts'

/** The nodes that may end without a result although the execution goes on. */
export interface UncertainNodes {
  /** Their condition may be false, or a node before them may be skipped. */
  skippable: ReadonlySet<string>
  /** Those too whose failure is tolerated. */
  withoutResult: ReadonlySet<string>
}

/** Returns such nodes of a graph; undefined for one without any: nearly all are. */
export function uncertainNodes(
  nodes: Readonly<Record<string, WorkflowNode>>,
  order: readonly (readonly string[])[] | undefined,
  { predecessors }: Graph,
): UncertainNodes | undefined {
  const own = Object.keys(nodes).filter(id => nodes[id]!.when || nodes[id]!.on_error === 'continue')
  if (own.length === 0) return undefined
  const skippable = new Set(own.filter(id => nodes[id]!.when))
  // In an order in which each comes after those before it.
  for (const rank of order ?? [])
    for (const id of rank) if (predecessors.get(id)!.some(before => skippable.has(before))) skippable.add(id)
  return { skippable, withoutResult: new Set([...own, ...skippable]) }
}

/** Validates the condition of a node. `kinds`: the types of its references, by their text. */
export function diagnoseCondition(
  id: string,
  when: Condition,
  kinds: ReadonlyMap<string, Kinds>,
  { warn, pattern }: Pick<NodeContext, 'warn' | 'pattern'>,
): void {
  const wrong = conditionFault(when)
  if (wrong) return warn('invalid_condition', `Node '${id}': ${wrong.message}.`, { path: wrong.place })
  for (const { condition, place } of conditionsIn(when)) {
    const mistyped = typeFault(condition, kinds)
    if (mistyped) warn('constant_condition', `Node '${id}': this is never true: ${mistyped}.`, { path: place })
    const broken = patternFault(condition, pattern)
    if (broken !== undefined) warn('invalid_condition', `Node '${id}': ${broken}`, { path: `${place}.matches` })
    const twice = contradiction(condition)
    if (twice) warn('constant_condition', `Node '${id}': this is never true: ${twice}.`, { path: place })
  }
  if (referencesIn(when, 'when').length > 0) return
  const same = (value: unknown) => value
  if (hasPattern(when) && !pattern) return
  try {
    const always = holds(when, { read: same, find: same, pattern })
    warn(
      'constant_condition',
      `Node '${id}': the condition refers to nothing, so it is ${always ? 'always' : 'never'} true.`,
      {
        path: 'when',
      },
    )
  } catch (thrown) {
    // A pattern that is none was reported above.
    if (thrown instanceof Failure) return
    if (!(thrown instanceof ConditionFault)) throw thrown
    warn('invalid_condition', `Node '${id}': ${thrown.message}`, { path: 'when' })
  }
}

/** What is wrong with the pattern of a condition, as a sentence; undefined if nothing is, or it is not known yet. */
function patternFault({ matches }: Condition, pattern: NodeContext['pattern']): string | undefined {
  if (matches === undefined || matches.includes('${')) return undefined
  try {
    pattern?.(matches)
    return undefined
  } catch (thrown) {
    return Failure.from(thrown).message
  }
}

/** Why a test can never be true by the types of its values, as a part of a sentence; undefined if it can. */
function typeFault({ value, ...test }: Condition, kinds: ReadonlyMap<string, Kinds>): string | undefined {
  const kindsOf = (one: unknown): Kinds => {
    if (typeof one !== 'string' || !one.includes('${')) return new Set([jsonType(one)])
    return kinds.get(one.trim()) ?? 'anything'
  }
  const left = kindsOf(value)
  const misfits = (right: Kinds) =>
    left !== 'anything' && right !== 'anything' && !mayFit(right, left) && !mayFit(left, right)
  if (test.equals !== undefined && misfits(kindsOf(test.equals)))
    return `the value is of type ${kindsText(left)} and is compared with one of type ${kindsText(kindsOf(test.equals))}`
  if (test.in !== undefined && test.in.every(one => misfits(kindsOf(one))))
    return test.in.length === 0
      ? 'the list is empty'
      : `the value is of type ${kindsText(left)}, and none of the list is`
  return undefined
}

/** Two tests of `all` that ask the same value to be equal to different ones, as a part of a sentence. */
function contradiction({ all }: Condition): string | undefined {
  const wanted = new Map<string, string>()
  for (const { value, equals } of all ?? []) {
    if (typeof value !== 'string' || equals === undefined) continue
    const text = JSON.stringify(equals)
    const before = wanted.get(value)
    if (before !== undefined && before !== text && !`${before}${text}`.includes('${'))
      return `${value} cannot be equal to both ${before} and ${text}`
    wanted.set(value, text)
  }
  return undefined
}

/** Validates what a node says about nodes before it that have no result. */
export function diagnoseOptionalResults(
  id: string,
  node: WorkflowNode,
  { dag, warn, uncertain }: Pick<NodeContext, 'dag' | 'warn' | 'uncertain'>,
  before: readonly string[],
): void {
  const used = new Set<string>()
  for (const { reference } of referencesOfNode(node))
    if ('root' in reference) used.add(referenceText(reference.root, reference.path))
  for (const name of Object.keys(node.defaults ?? {})) {
    const reference = defaultReference(name)
    const path = `defaults["${name}"]`
    const says = (why: string, facts: object = {}) =>
      warn('unused_default', `Node '${id}': the default of '${name}' never applies: ${why}.`, { path, ...facts })
    if (reference instanceof ReferenceFault) {
      warn(reference.code, `Node '${id}': ${reference.message}`, { path })
      continue
    }
    const { root } = reference
    const target = String(reference.path[0])
    if (root !== 'nodes' || !isOfResult(reference.path))
      says('defaults are for results of nodes, such as nodes.id.result.text')
    else if (!Object.hasOwn(dag.nodes, target))
      says(`there is no node '${target}'`, suggested(target, Object.keys(dag.nodes)))
    else if (!used.has(referenceText(root, reference.path))) says('the node has no such reference')
    else if (!uncertain?.withoutResult.has(target)) says(`node '${target}' always has a result when this node runs`)
  }
  if (node.join === 'any' && !before.some(one => uncertain?.skippable.has(one)))
    warn('unused_join', `Node '${id}': 'join' has no effect, because no node before it can be skipped.`, {
      path: 'join',
    })
}
