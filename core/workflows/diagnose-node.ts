import type { z } from 'zod'
import type { Dag, Parameters, WorkflowNode } from '../dag/definition.ts'
import type { RegionLabel } from '../schemas/region.ts'
import { type Kinds, kindsOf, membersAt, walk } from '../schemas/schema-walk.ts'
import type { ModelFacts, TaskRecord } from '../tasks/task.ts'
import { referencesIn } from './bind.ts'
import { diagnoseInputs, type Given, stepSize } from './diagnose-inputs.ts'
import { type DiagnosticFinding, suggested, type TypeIssue, type Warning } from './diagnostics.ts'
import { kindsOfParameter } from './parameters.ts'
import { outputPath } from './prune.ts'
import { type Reference, ReferenceFault, type ReferenceStep } from './references.ts'

/** The part of a task record that the validation uses. */
export type TaskType = Pick<TaskRecord, 'request' | 'result' | 'isMediaPath' | 'otherFields' | 'modelFaults'>

/** The part of a model's configuration that the validation uses. */
export interface OfferedModel extends ModelFacts {
  enabled: boolean
  tasks: readonly string[]
  /** Where its engines run; absent if they have no region. */
  region?: RegionLabel | undefined
  /** Additional request fields that its configuration accepts. */
  extraParams: readonly string[]
}

/** The tasks and models that workflows may use. */
export interface Offer {
  /** By its name or an alias; undefined: there is no such task. */
  task(name: string): { name: string; type: TaskType } | undefined
  taskNames(): readonly string[]
  model(id: string): OfferedModel | undefined
  modelIds(): readonly string[]
  /** The region in which all models must be; null or absent if any will do. */
  region?: RegionLabel | null
}

const known = new Set([
  'model_id',
  'task',
  'inputs',
  'outputs',
  'name',
  'timeout',
  'retries',
  'on_error',
  'cache',
  'position',
])
const nodeMembers = new Set(['result', 'outputs', 'status', 'error'])

export interface NodeContext {
  dag: Dag
  parameters: Parameters | undefined
  offer: Offer
  used: Set<string>
  warn: (warning: DiagnosticFinding<Warning>) => void
  issue: (issue: DiagnosticFinding<TypeIssue>) => void
}

/** Validates one node. Yields after every few references or fields. */
export function* diagnoseNode(id: string, node: WorkflowNode, context: NodeContext): Generator<void, void> {
  const { offer, warn, issue } = context
  const task = offer.task(node.task)
  if (!task)
    issue({
      code: 'unknown_task',
      message: `Node '${id}': there is no task '${node.task}'.`,
      node_id: id,
      path: 'task',
      ...suggested(node.task, offer.taskNames()),
    })
  diagnoseModel(id, node, task?.name, context)
  for (const field of Object.keys(node))
    if (!known.has(field))
      warn({
        code: 'unknown_field',
        message: `Node '${id}': '${field}' has no meaning here.`,
        node_id: id,
        path: field,
        ...suggested(field, known),
      })

  const given: Given[] = []
  const templates: string[] = []
  let checked = 0
  for (const { at, path, whole, reference } of referencesIn(node.inputs)) {
    if (reference instanceof ReferenceFault)
      warn({ code: reference.code, message: `Node '${id}': ${reference.message}`, node_id: id, path })
    else {
      const kinds = diagnoseReference(id, path, reference, context)
      if (whole) given.push({ at, path, kinds, reference: `\${${reference.source}}` })
      else templates.push(path)
    }
    if (++checked % stepSize === 0) yield
  }
  if (!task) return
  yield* diagnoseInputs(id, node, task.type, { given, templates }, context)
  for (const [at, output] of node.outputs.entries()) {
    const path = outputPath(output)
    if (path && walk(task.type.result, path) !== 'missing') continue
    issue({
      code: 'unknown_output_path',
      message: `Node '${id}' has no output '${output}': results of ${task.name} have no such member.`,
      node_id: id,
      path: `outputs[${at}]`,
      ...(path ? memberMeant(task.type.result, path) : {}),
    })
  }
}

function diagnoseModel(
  id: string,
  { model_id }: WorkflowNode,
  task: string | undefined,
  { offer, warn, issue }: NodeContext,
): void {
  if (!model_id)
    return warn({ code: 'node_without_model', message: `Node '${id}' has no model selected.`, node_id: id })
  const model = offer.model(model_id)
  const at = { node_id: id, path: 'model_id' }
  if (!model)
    warn({
      code: 'unknown_model',
      message: `Node '${id}': the model '${model_id}' does not exist here.`,
      ...at,
      ...suggested(model_id, offer.modelIds()),
    })
  else if (!model.enabled)
    warn({ code: 'model_disabled', message: `Node '${id}': the model '${model_id}' is disabled.`, ...at })
  else if (task !== undefined && !model.tasks.includes(task))
    issue({
      code: 'model_task_mismatch',
      message: `Node '${id}': the model '${model_id}' does ${model.tasks.join(', ')}, not ${task}.`,
      ...at,
    })
  const { region } = offer
  if (model && region && model.region !== region)
    warn({
      code: 'model_outside_region',
      message: `Node '${id}': the workflow runs in the region ${region}, and the model '${model_id}' runs ${model.region === undefined ? 'in no region' : `in ${model.region}`}.`,
      ...at,
    })
}

/** Suggests a name for the first member of the path that the schema does not have. */
function memberMeant(schema: z.ZodType, path: readonly ReferenceStep[]): { suggestion?: string } {
  const wrong = path.findIndex((_, at) => walk(schema, path.slice(0, at + 1)) === 'missing')
  return wrong < 0 ? {} : suggested(String(path[wrong]), membersAt(schema, path.slice(0, wrong)))
}

/** The types that a reference may have, as far as known. */
function diagnoseReference(id: string, path: string, reference: Reference, context: NodeContext): Kinds {
  const { dag, parameters, offer, used, warn, issue } = context
  const { root, source } = reference
  const [first, what, ...rest] = reference.path
  const located = (of: string) => ({
    message: `Node '${id}': \${${source}}: ${of}.`,
    node_id: id,
    path,
    reference: `\${${source}}`,
  })
  if (root === 'execution') {
    if (first === 'id' || first === 'created_at') return new Set([first === 'id' ? 'string' : 'integer'])
    warn({ code: 'unknown_reference', ...located("an execution has 'id' and 'created_at'") })
    return 'anything'
  }
  if (root === 'input') {
    used.add(String(first))
    const parameter = parameters && Object.hasOwn(parameters, String(first)) ? parameters[String(first)] : undefined
    if (parameters && !parameter) {
      const meant = suggested(String(first), Object.keys(parameters))
      // The suggested parameter is not also reported as unused.
      if (meant.suggestion !== undefined) used.add(meant.suggestion)
      warn({ code: 'undeclared_input', ...located(`no parameter '${String(first)}' is declared`), ...meant })
    }
    return parameter && what === undefined ? kindsOfParameter(parameter.type) : 'anything'
  }
  const target = Object.hasOwn(dag.nodes, String(first)) ? dag.nodes[String(first)] : undefined
  const wrong =
    first === id
      ? 'a node cannot use its own result'
      : !target
        ? `there is no node '${String(first)}'`
        : !nodeMembers.has(String(what))
          ? "after the node comes 'result', 'status' or 'error'"
          : undefined
  if (wrong !== undefined) {
    const meant = target || first === id ? {} : suggested(String(first), Object.keys(dag.nodes))
    warn({ code: 'unknown_reference', ...located(wrong), ...meant })
    return 'anything'
  }
  const type = offer.task(target!.task)
  if (!type || (what !== 'result' && what !== 'outputs')) return 'anything'
  const found = walk(type.type.result, rest)
  if (found === 'missing')
    issue({
      code: 'unknown_output_path',
      ...located(`results of ${type.name} have no such member`),
      ...memberMeant(type.type.result, rest),
    })
  return kindsOf(found)
}
