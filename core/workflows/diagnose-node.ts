import type { ConditionReader } from '../dag/condition.ts'
import { type Dag, isPinned, type Parameters, WorkflowNode } from '../dag/definition.ts'
import { placeOf } from '../schemas/issues.ts'
import type { RegionLabel } from '../schemas/region.ts'
import { jsonType, type Kinds, kindsText, mayFit, membersAt, walk } from '../schemas/schema-walk.ts'
import type { WorkflowRecord } from '../store/workflows.ts'
import { isWithoutModel } from '../tasks/registry.ts'
import { requestFields } from '../tasks/request-fields.ts'
import type { ModelFacts, StepTaskRecord, TaskRecord } from '../tasks/task.ts'
import { referencesOfNode } from './bind.ts'
import { diagnoseCondition, diagnoseOptionalResults, type UncertainNodes } from './diagnose-condition.ts'
import { diagnoseList, kindsAt, kindsOfItem, missingInResult, schemasInResult } from './diagnose-for-each.ts'
import { diagnoseInputs, type Given, stepSize } from './diagnose-inputs.ts'
import { diagnoseNested, type NestedWorkflow, nestedOutput } from './diagnose-nested.ts'
import { diagnoseWait } from './diagnose-wait.ts'
import { type Diagnostic, suggested, type TypeIssue, type Warning } from './diagnostics.ts'
import { kindsOfParameter } from './parameters.ts'
import { outputPath, reach } from './prune.ts'
import { everyItem, type Reference, ReferenceFault, type ReferenceStep } from './references.ts'

/** The part of a task record that the validation uses. */
export type TaskType = Pick<
  TaskRecord,
  'request' | 'result' | 'isMediaPath' | 'otherFields' | 'modelFaults' | 'runner'
> &
  Partial<Pick<StepTaskRecord, 'runsWorkflow'>>

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
  /** Finds a stored workflow by id or name; rejects with Failure `not_found`. Absent where none is stored. */
  findWorkflow?: (name: string, version?: number) => Promise<WorkflowRecord>
  /** Names of tokens, and e-mail addresses of users in lower case; absent if they are not known. */
  approvers?: ReadonlySet<string>
}

const known = new Set(Object.keys(WorkflowNode.shape))
const nodeMembers = new Set(['result', 'outputs', 'status', 'error'])

type FindingFacts = Partial<Omit<Diagnostic, 'code' | 'severity' | 'message' | 'node_id'>>

export interface NodeContext {
  dag: Dag
  parameters: Parameters | undefined
  offer: Offer
  used: Set<string>
  uncertain: UncertainNodes | undefined
  /** The workflows that nodes run, by node, as far as they are known. */
  nested: ReadonlyMap<string, NestedWorkflow>
  /** Compiles patterns, and throws for one that is none; undefined if no condition has one. */
  pattern?: ConditionReader['pattern']
  /** Whether pinned nodes do not run. */
  usesPins: boolean
  /** The nodes before each node. */
  predecessors: ReadonlyMap<string, readonly string[]>
  /** Both report a finding of the node; `facts` say where it is and what was probably meant. */
  warn: (code: Warning['code'], message: string, facts?: FindingFacts) => void
  issue: (code: TypeIssue['code'], message: string, facts?: FindingFacts) => void
}

/** Validates one node. Yields after every few references or fields. */
export function* diagnoseNode(id: string, node: WorkflowNode, context: NodeContext): Generator<void, void> {
  const { offer, usesPins, warn, issue } = context
  const task = offer.task(node.task)
  if (!task)
    issue('unknown_task', `Node '${id}': there is no task '${node.task}'.`, {
      path: 'task',
      ...suggested(node.task, offer.taskNames()),
    })
  if (isPinned(node)) {
    if (task) diagnosePin(id, node, task, context)
    if (usesPins) return
    yield
  }
  if (task && isWithoutModel(task.type)) diagnoseStep(id, node, task, context)
  else diagnoseModel(id, node, task?.name, context)
  for (const field of Object.keys(node))
    if (!known.has(field))
      warn('unknown_field', `Node '${id}': '${field}' has no meaning here.`, {
        path: field,
        ...suggested(field, known),
      })

  const given: Given[] = []
  const templates: string[] = []
  const kindsInCondition = new Map<string, Kinds>()
  let kindsOfList: Kinds | undefined
  let checked = 0
  for (const { at, path, whole, reference } of referencesOfNode(node)) {
    if (reference instanceof ReferenceFault) warn(reference.code, `Node '${id}': ${reference.message}`, { path })
    else {
      const kinds = diagnoseReference(id, path, reference, context)
      if (path.startsWith('when')) kindsInCondition.set(`\${${reference.source}}`, kinds)
      else if (path.startsWith('for_each')) kindsOfList = kinds
      else if (whole) given.push({ at, path, kinds, reference: `\${${reference.source}}` })
      else templates.push(path)
    }
    if (++checked % stepSize === 0) yield
  }
  if (node.when) diagnoseCondition(id, node.when, kindsInCondition, context)
  diagnoseList(id, node, kindsOfList, context)
  if (node.defaults || node.join) diagnoseOptionalResults(id, node, context, context.predecessors.get(id) ?? [])
  if (!task) return
  yield* diagnoseInputs(id, node, task.type, { given, templates }, context)
  if (task.type.runsWorkflow) diagnoseNested(id, node, given, context)
  if (task.type.runner === 'wait') diagnoseWait(id, node, requestFields(task.type, []), context)
  for (const [at, output] of node.outputs.entries()) {
    const path = outputPath(output)
    if (path && schemasInResult(node, task.type, path) !== 'missing') continue
    issue(
      'unknown_output_path',
      `Node '${id}' has no output '${output}': ${missingInResult(node, task.name, path ?? [])}.`,
      {
        path: `outputs[${at}]`,
        ...(path ? memberMeant(node, task.type, path) : {}),
      },
    )
  }
}

/**
 * Warns of a pinned result that the task would not give. The pin is used all the same. Of a node with a list, whose result
 * is one too, the first item counts that is not null.
 */
function diagnosePin(
  id: string,
  { pin, for_each: list }: WorkflowNode,
  { name, type }: { name: string; type: Pick<TaskType, 'result'> },
  { warn }: Pick<NodeContext, 'warn'>,
): void {
  const isList = list !== undefined && Array.isArray(pin)
  const at = isList ? pin.findIndex(item => item !== null) : -1
  if (isList && at < 0) return
  const { error } = type.result.safeParse(isList ? pin[at] : pin)
  const [first] = error?.issues ?? []
  if (!first) return
  const place = placeOf(['pin', ...(isList ? [at] : []), ...first.path])
  warn('unusual_pin', `Node '${id}': the pinned result is unlike those of ${name} at ${place}: ${first.message}.`, {
    path: place,
  })
}

function diagnoseStep(
  id: string,
  { model_id, budget }: WorkflowNode,
  { name: task, type }: { name: string; type: TaskType },
  { warn }: NodeContext,
): void {
  if (budget !== undefined && !type.runsWorkflow)
    warn('unknown_field', `Node '${id}': ${task} costs nothing; 'budget' has no effect.`, { path: 'budget' })
  if (model_id)
    warn('unknown_field', `Node '${id}': ${task} needs no model; 'model_id' is ignored.`, { path: 'model_id' })
}

function diagnoseModel(
  id: string,
  { model_id }: WorkflowNode,
  task: string | undefined,
  { offer, warn, issue }: NodeContext,
): void {
  if (!model_id) return warn('node_without_model', `Node '${id}' has no model selected.`)
  const model = offer.model(model_id)
  if (!model)
    warn('unknown_model', `Node '${id}': the model '${model_id}' does not exist here.`, {
      path: 'model_id',
      ...suggested(model_id, offer.modelIds()),
    })
  else if (!model.enabled)
    warn('model_disabled', `Node '${id}': the model '${model_id}' is disabled.`, { path: 'model_id' })
  else if (task !== undefined && !model.tasks.includes(task))
    issue('model_task_mismatch', `Node '${id}': the model '${model_id}' does ${model.tasks.join(', ')}, not ${task}.`, {
      path: 'model_id',
    })
  const { region } = offer
  if (model && region && model.region !== region)
    warn(
      'model_outside_region',
      `Node '${id}': the workflow runs in the region ${region}, and the model '${model_id}' runs ${model.region === undefined ? 'in no region' : `in ${model.region}`}.`,
      { path: 'model_id' },
    )
}

/** Suggests a name for the first member of a path into the result of a node that the results do not have. */
function memberMeant(
  { for_each }: WorkflowNode,
  { result: schema }: TaskType,
  whole: readonly ReferenceStep[],
): { suggestion?: string } {
  if (for_each !== undefined && typeof whole[0] !== 'number') return {}
  const path = for_each === undefined ? whole : whole.slice(1)
  const wrong = path.findIndex((_, at) => walk(schema, path.slice(0, at + 1)) === 'missing')
  return wrong < 0 ? {} : suggested(String(path[wrong]), membersAt(schema, path.slice(0, wrong)))
}

/** The types that a reference may have, as far as known. */
function diagnoseReference(id: string, path: string, reference: Reference, context: NodeContext): Kinds {
  const { dag, parameters, offer, used, nested, warn, issue } = context
  const { root, source } = reference
  const [first, what, ...rest] = reference.path
  const text = `\${${source}}`
  const located = (fault: string) => `Node '${id}': ${text}: ${fault}.`
  const at = { path, reference: text }
  if (root === 'item' || root === 'index') {
    const node = dag.nodes[id]!
    const kinds =
      node.for_each === undefined || !path.startsWith('inputs')
        ? { missing: `'${root}' is known only in the inputs of a node with 'for_each'` }
        : kindsOfItem(node, reference, context)
    if (kinds === 'anything' || !('missing' in kinds)) return kinds
    warn('unknown_reference', located(kinds.missing), at)
    return 'anything'
  }
  if (root === 'execution') {
    if (first === 'id' || first === 'created_at') return new Set([first === 'id' ? 'string' : 'integer'])
    warn('unknown_reference', located("an execution has 'id' and 'created_at'"), at)
    return 'anything'
  }
  if (root === 'input') {
    used.add(String(first))
    const parameter = parameters && Object.hasOwn(parameters, String(first)) ? parameters[String(first)] : undefined
    if (parameters && !parameter) {
      const meant = suggested(String(first), Object.keys(parameters))
      // The suggested parameter is not also reported as unused.
      if (meant.suggestion !== undefined) used.add(meant.suggestion)
      warn('undeclared_input', located(`no parameter '${String(first)}' is declared`), { ...at, ...meant })
    }
    const kinds = parameter ? kindsOfParameter(parameter.type) : 'anything'
    if (what === everyItem && !mayFit(new Set(['array']), kinds))
      issue('type_mismatch', located(`the parameter '${String(first)}' is ${kindsText(kinds)}, so it has no items`), {
        ...at,
        expected: 'array',
        actual: kindsText(kinds),
      })
    return what === undefined ? kinds : kindsAt('unknown', reference.path)
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
    warn('unknown_reference', located(wrong), { ...at, ...meant })
    return 'anything'
  }
  if (what !== 'result' && what !== 'outputs') return 'anything'
  if (context.usesPins && isPinned(target!)) {
    const value = reach(target!.pin, rest)
    if (value !== undefined) return new Set([jsonType(value)])
    issue('unknown_output_path', located(`the pinned result of node '${String(first)}' has no such member`), at)
    return 'anything'
  }
  const type = offer.task(target!.task)
  if (!type) return 'anything'
  const inner = nested.get(String(first))
  if (inner && 'workflow' in inner) {
    const output = nestedOutput(target!, inner.workflow, rest, offer)
    if ('kinds' in output) return output.kinds
    const { fault, ...meant } = output
    issue('unknown_output_path', located(fault), { ...at, ...meant })
    return 'anything'
  }
  const found = schemasInResult(target!, type.type, rest)
  if (found === 'list') return new Set(['array'])
  if (found === 'missing')
    issue('unknown_output_path', located(missingInResult(target!, type.name, rest)), {
      ...at,
      ...memberMeant(target!, type.type, rest),
    })
  return kindsAt(found, rest)
}
