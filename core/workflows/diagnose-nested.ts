import type { Dag, WorkflowNode } from '../dag/definition.ts'
import { Failure } from '../failure.ts'
import { isObject } from '../json.ts'
import { type Kinds, kindsText, mayFit, membersAt, walk } from '../schemas/schema-walk.ts'
import type { WorkflowRecord } from '../store/workflows.ts'
import { referencesIn } from './bind.ts'
import { kindsAt, missingInResult } from './diagnose-for-each.ts'
import type { Given } from './diagnose-inputs.ts'
import type { NodeContext, Offer } from './diagnose-node.ts'
import { suggested } from './diagnostics.ts'
import { kindsOfParameter, parameterFault } from './parameters.ts'
import { outputPath } from './prune.ts'
import { everyItem, type ReferenceStep } from './references.ts'

/** A workflow that a node runs, as far as it is known; `fault`: why there is none. */
export type NestedWorkflow = { workflow: WorkflowRecord; runsItself: boolean } | { fault: string }

/** How many workflows are looked up for one validation, and how many of them in search of a cycle of one node. */
const maxLookedUp = 100
const maxInCycle = 20

/** The workflow that a node names, and its version; undefined if references decide it, or if the node runs none. */
function namedBy(
  { task, inputs }: WorkflowNode,
  offer: Pick<Offer, 'task'>,
): { name: string; version?: number } | undefined {
  const { workflow: name, version } = inputs
  if (!offer.task(task)?.type.runsWorkflow || typeof name !== 'string' || name.includes('${')) return undefined
  if (version !== undefined && !Number.isInteger(version)) return undefined
  return version === undefined ? { name } : { name, version: version as number }
}

/**
 * Looks up the workflows that nodes run, by node. `self`: the id of the workflow that is validated, if it is stored: whether
 * they run it again for certain is found too.
 */
export async function nestedWorkflows(
  dag: Dag,
  offer: Offer,
  self: string | undefined,
): Promise<ReadonlyMap<string, NestedWorkflow>> {
  const found = new Map<string, NestedWorkflow>()
  const { findWorkflow } = offer
  if (!findWorkflow) return found
  const known = new Map<string, Promise<WorkflowRecord | Failure>>()
  const lookUp = ({ name, version }: { name: string; version?: number }) => {
    const key = `${version ?? ''} ${name}`
    let one = known.get(key)
    if (!one && known.size < maxLookedUp) {
      one = findWorkflow(name, version).catch((thrown: unknown) => Failure.from(thrown))
      known.set(key, one)
    }
    return one
  }

  /** Whether a workflow runs `self` again in every execution. */
  async function runsSelf(first: WorkflowRecord): Promise<boolean> {
    const seen = new Set<string>()
    const open = [first]
    for (let one = open.pop(); one && seen.size < maxInCycle; one = open.pop()) {
      if (one.id === self) return true
      if (seen.has(one.id)) continue
      seen.add(one.id)
      for (const node of certainNodes(one.dag)) {
        const named = namedBy(node, offer)
        const next = named && (await lookUp(named))
        if (next && !(next instanceof Failure)) open.push(next)
      }
    }
    return false
  }

  const certain = new Set(certainNodes(dag))
  for (const [id, node] of Object.entries(dag.nodes)) {
    const named = namedBy(node, offer)
    const workflow = named && (await lookUp(named))
    if (workflow instanceof Failure) {
      if (!workflow.retryable && workflow.code !== 'internal_error') found.set(id, { fault: workflow.message })
    } else if (workflow)
      found.set(id, { workflow, runsItself: self !== undefined && certain.has(node) && (await runsSelf(workflow)) })
  }
  return found
}

/** The nodes that run in every execution: all, unless there is any condition. */
const certainNodes = ({ nodes }: Dag): WorkflowNode[] => {
  const all = Object.values(nodes)
  return all.some(({ when }) => when) ? [] : all
}

/** Validates what a node gives to the workflow that it runs. `given`: the references that are whole values. */
export function diagnoseNested(
  id: string,
  { inputs: { input = {} }, retries }: WorkflowNode,
  given: readonly Given[],
  { nested, warn, issue }: NodeContext,
): void {
  if (retries)
    warn('unknown_field', `Node '${id}': 'retries' has no effect, because the nodes of the workflow have their own.`, {
      path: 'retries',
    })
  const one = nested.get(id)
  if (!one) return
  if ('fault' in one) return warn('unknown_workflow', `Node '${id}': ${one.fault}`, { path: 'inputs.workflow' })
  const { name, parameters } = one.workflow
  if (one.runsItself)
    warn('workflow_cycle', `Node '${id}': the workflow '${name}' runs this workflow again, so it would never end.`, {
      path: 'inputs.workflow',
    })
  if (!parameters || !isObject(input)) return
  for (const [parameter, { required, default: fallback }] of Object.entries(parameters))
    if (!Object.hasOwn(input, parameter) && fallback === undefined && required !== false)
      issue('missing_input', `Node '${id}': the workflow '${name}' needs the parameter '${parameter}'.`, {
        path: `inputs.input.${parameter}`,
      })
  for (const [parameter, value] of Object.entries(input)) {
    const path = `inputs.input.${parameter}`
    const declared = Object.hasOwn(parameters, parameter) ? parameters[parameter]! : undefined
    if (!declared) {
      const meant = suggested(parameter, Object.keys(parameters))
      issue('unknown_input', `Node '${id}': the workflow '${name}' has no parameter '${parameter}'.`, {
        path,
        ...meant,
      })
      continue
    }
    const reference = given.find(({ at }) => at.length === 2 && at[0] === 'input' && at[1] === parameter)
    const expected = kindsOfParameter(declared.type)
    if (reference) {
      if (!mayFit(reference.kinds, expected))
        issue(
          'type_mismatch',
          `Node '${id}': the parameter '${parameter}' of the workflow '${name}' is ${kindsText(expected)}, and ${reference.reference} is ${kindsText(reference.kinds)}.`,
          { path, expected: kindsText(expected), actual: kindsText(reference.kinds), reference: reference.reference },
        )
      continue
    }
    // Texts with references are complete at run time only.
    if (referencesIn({ value }).length > 0) continue
    const fault = parameterFault(value, declared)
    if (fault)
      issue(
        fault.code === 'invalid_type' ? 'type_mismatch' : 'value_out_of_range',
        `Node '${id}': the parameter '${parameter}' of the workflow '${name}' ${fault.message}`,
        { path },
      )
  }
}

type Output = { fault: string; suggestion?: string } | { kinds: Kinds }

/**
 * What is wrong with a path into the result of a node that runs a workflow, or the workflow for each item of a list; or else
 * the types of the value there.
 */
export function nestedOutput(
  node: WorkflowNode,
  workflow: WorkflowRecord,
  path: readonly ReferenceStep[],
  offer: Offer,
): Output {
  if (node.for_each === undefined) return outputOf(workflow, path, offer)
  const [item, ...rest] = path
  if (item === undefined) return { kinds: new Set(['array']) }
  if (typeof item !== 'number') return { fault: missingInResult(node, node.task, path) }
  const found = outputOf(workflow, rest, offer)
  return 'kinds' in found && item === everyItem ? { kinds: new Set(['array']) } : found
}

function outputOf(workflow: WorkflowRecord, [inner, member, ...rest]: readonly ReferenceStep[], offer: Offer): Output {
  if (inner === undefined) return { kinds: new Set(['object']) }
  const named = `the workflow '${workflow.name}'`
  const node = Object.hasOwn(workflow.dag.nodes, inner) ? workflow.dag.nodes[inner] : undefined
  if (!node)
    return { fault: `${named} has no node '${inner}'`, ...suggested(String(inner), Object.keys(workflow.dag.nodes)) }
  if (member === undefined) return { kinds: new Set(['object']) }
  if (member !== 'result' && member !== 'values')
    return { fault: `after the node '${inner}' of ${named} comes 'result' or 'values'` }
  const task = offer.task(node.task)
  if (member === 'values' || !task) return { kinds: 'anything' }
  const schema = task.type.result
  const found = walk(schema, rest)
  if (found === 'missing')
    return {
      fault: `results of ${task.name} have no such member`,
      ...(rest[0] === undefined ? {} : suggested(String(rest[0]), membersAt(schema))),
    }
  if (!isKept(node.outputs, rest))
    return {
      fault: `the node '${inner}' of ${named} does not keep this value. Its 'outputs' are ${node.outputs.join(', ')}`,
    }
  return { kinds: kindsAt(found, rest) }
}

/** Whether `outputs` keep the value at a path, or a part of it. */
function isKept(outputs: readonly string[], path: readonly ReferenceStep[]): boolean {
  if (outputs.length === 0) return true
  return outputs.some(output => {
    const kept = outputPath(output) ?? []
    const shared = Math.min(kept.length, path.length)
    return kept.slice(0, shared).every((step, at) => step === path[at])
  })
}
