import { z } from 'zod'
import { awaitables, itemStatuses, nodeStatuses, skipReasons } from '../../core/dag/execution-state.ts'
import type { JobProgress } from '../../core/jobs/job-progress.ts'
import {
  anything,
  boolean,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableNumber,
  nullableString,
  object,
  oneOf,
  string,
} from '../../core/schemas/fields.ts'
import { Task } from '../../core/schemas/task.ts'
import type { ExecutionItem } from '../../core/store/execution-items.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { ExecutionNode, ExecutionRecord } from '../../core/store/workflows.ts'
import { hasFiles, shownResult as withAddresses } from '../../core/tasks/registry.ts'
import { withFileUrls } from '../../core/workflows/pinned-files.ts'
import { prune } from '../../core/workflows/prune.ts'
import { Embedded, readResult } from '../http/request/json-text.ts'
import type { Owners } from '../http/request/owners.ts'
import { JobErrorObject, type UrlReader, type Viewer, WaitingFor, waitingObject } from './job-record.ts'
import { viewOf } from './view-of.ts'

type Stored = JobRecord['result']

/** Returns a result with the addresses of its files. A large one is added to `embedded`; without it, it is null. */
export async function shownResult(
  task: string,
  result: Stored,
  { origin }: UrlReader,
  { files }: Owners<'files'>,
  embedded?: Embedded[],
): Promise<unknown> {
  const linked = hasFiles(task)
  if (typeof result === 'object' && result !== null && !linked) {
    const large = embedded && new Embedded(result)
    if (large) embedded.push(large)
    return large ?? null
  }
  if (result === null) return null
  const stored = JSON.parse(await readResult(result)) as unknown
  return linked ? withAddresses(task, stored, file => files.link(file, origin)) : stored
}

/** The kept parts of a result: for the outputs of the execution, and as the result of the node itself. */
interface ShownKept {
  output: { result: unknown; values: Record<string, unknown> }
  result: unknown
}

/** Returns the kept parts of a node's result. Large results are not parsed on the event loop. */
async function shownKept(
  { task, outputs }: { task: string; outputs: readonly string[] },
  result: Stored,
  viewer: UrlReader,
  owners: Owners<'cpu' | 'files'>,
  embedded?: Embedded[],
): Promise<ShownKept> {
  if (result === null || typeof result === 'string' || hasFiles(task)) {
    const output = prune(await shownResult(task, result, viewer, owners), outputs)
    return { output, result: output.result }
  }
  if (!embedded) return { output: { result: null, values: {} }, result: null }
  if (outputs.length === 0) {
    const whole = new Embedded(result)
    embedded.push(whole)
    return { output: { result: whole, values: {} }, result: whole }
  }
  const [kept, part] = (['kept', 'result'] as const).map(
    what => new Embedded(() => owners.cpu.pruned(result, outputs, what)),
  ) as [Embedded, Embedded]
  embedded.push(kept, part)
  return { output: kept as unknown as ShownKept['output'], result: part }
}

/** Returns a pinned result as readers get it: with the addresses of the organization's files. */
export const shownPin = (
  pin: unknown,
  organizationId: string,
  { origin }: UrlReader,
  { files }: Owners<'files'>,
): Promise<unknown> =>
  withFileUrls(pin, async id => {
    const file = await files.find(organizationId, id)
    return file && files.link(file, origin)
  })

/** Returns the kept parts of a pinned result. */
function keptPin(pin: unknown, outputs: readonly string[]): ShownKept {
  const output = prune(pin, outputs)
  return { output, result: output.result }
}

export const ExecutionNodeObject = namedObject('ExecutionNode', 'A node of an execution.', {
  node_id: string('Id of the node in the workflow.'),
  task: Task,
  model_id: string('Id of the model.'),
  status: oneOf('State of the node.', nodeStatuses),
  awaits: nullable(
    z.enum(awaitables),
    'What a waiting node waits for: an answer, an event, a point in time, or another execution; of a list, what all of its items wait for. `items` while some of them do something else. Null for others.',
  ),
  skip_reason: nullable(
    z.enum(skipReasons),
    'Why it was skipped: its condition was false, a node before it was skipped, or another node has failed. Null if it was not.',
  ),
  attempts: integer('Attempts so far.'),
  cached: boolean('Whether the result was taken from equal work before.'),
  pinned: boolean('Whether the node did not run, because its result was pinned.'),
  child_execution_id: nullableString('Id of the execution that a node with `workflow/run` has started; else null.'),
  job_id: nullableString('Id of the job of the node; null if it has none.'),
  started_at: nullableInteger('Unix seconds; null before.'),
  started_at_ms: nullableInteger('The same in Unix milliseconds.'),
  finished_at: nullableInteger('Unix seconds; null before.'),
  duration_ms: nullableInteger('Milliseconds from start to end; null before the end.'),
  items: nullable(
    object('Numbers of items.', {
      total: integer('All items of the list.'),
      completed: integer('Items that have completed.'),
      failed: integer('Items that have failed.'),
      running: integer('Items that run.'),
      waiting: integer('Items that wait for a person, an event, a time or another execution.'),
    }),
    'How many items a node with `for_each` has; null before its list is known, and for other nodes.',
  ),
  cost: nullableNumber(
    'Cost in the currency unit of the prices; null before the end, 0 for a result that was reused or pinned.',
  ),
  progress: nullableNumber('Progress from 0 to 1; null if unknown.'),
  queue_position: nullableInteger('How many jobs are before it; null unless it waits.'),
  waiting_for: nullable(WaitingFor, 'Why it has not begun; null unless it waits.'),
  resolved_inputs: anything(
    'The inputs with all references replaced, once the node has ended. Null if they are long: read the single node for them.',
  ),
  result: anything('Result of the task; null before the end. In lists only what `outputs` of the node keeps.'),
  error: nullable(JobErrorObject, 'Why the node failed; null if it did not.'),
  answer_url: nullableString(
    'Of a single node that waits: where its event is sent, or the page of its approval; with `for_each` its items have it. Null for others, for tokens without the scope `user:write`, and if there is no such address.',
  ),
  logs_url: nullableString('Where to read the log of the job; null without a job.'),
})

export const ExecutionItemObject = namedObject('ExecutionItem', 'An item of a node with `for_each`.', {
  index: integer('Its position in the list, from 0.'),
  status: oneOf('State of the item.', itemStatuses),
  attempts: integer('Attempts so far.'),
  cached: boolean('Whether the result was taken from equal work before.'),
  awaits: nullable(
    z.enum(awaitables),
    'What a waiting item waits for: an answer, an event, a point in time, or another execution. Null for others.',
  ),
  job_id: nullableString('Id of the job of the item, which has its inputs and its result.'),
  started_at: nullableInteger('Unix seconds; null before.'),
  finished_at: nullableInteger('Unix seconds; null before.'),
  duration_ms: nullableInteger('Milliseconds from start to end; null before the end.'),
  child_execution_id: nullableString('Id of the execution that the item runs; null if its task runs no workflow.'),
  error: nullable(JobErrorObject, 'Why the item failed; null if it did not.'),
  answer_url: nullableString(
    'Of an item that waits: where its event is sent, or the page of its approval. Null for others, for tokens without the scope `user:write`, and if there is no such address.',
  ),
})

/** Returns an item; `answerUrl`: where what it waits for can be ended. */
export const shownItem = (item: ExecutionItem, answerUrl: string | null): z.input<typeof ExecutionItemObject> =>
  viewOf(ExecutionItemObject, item, { duration_ms: durationOf(item), answer_url: answerUrl })

const durationOf = ({ startedAt, finishedAt }: Pick<ExecutionNode, 'startedAt' | 'finishedAt'>): number | null =>
  startedAt === null || finishedAt === null ? null : finishedAt - startedAt

/** The part of its items that has ended, from 0 to 1; null for a node without any. */
const progressOfItems = ({ items }: ExecutionNode): number | null =>
  items === null || items.total === 0 ? null : (items.completed + items.failed) / items.total

/** Returns a node without its inputs and result, which callers add. */
export function shownNode(node: ExecutionNode, viewer: Viewer, jobProgress?: JobProgress) {
  const { jobId } = node
  return viewOf(ExecutionNodeObject, node, {
    task: node.task as Task,
    started_at_ms: node.startedAt,
    duration_ms: durationOf(node),
    cost: node.cost === null ? null : node.cost / 1e6,
    progress: node.status === 'completed' ? 1 : (progressOfItems(node) ?? jobProgress?.progress ?? null),
    queue_position: jobProgress?.queuePosition ?? null,
    waiting_for: jobProgress?.waitingFor ? waitingObject(jobProgress.waitingFor) : null,
    resolved_inputs: null,
    result: null,
    answer_url: null,
    logs_url: jobId === null ? null : `${viewer.origin}/api/jobs/${jobId}/logs`,
  })
}

/** Maximum number of nodes whose progress is read. */
const maxWithProgress = 100

/** Returns the progress of nodes that wait or run, by node. */
export async function progressOfNodes(nodes: readonly ExecutionNode[], viewer: Viewer, { jobs }: Owners<'jobs'>) {
  const live = nodes.filter(({ status }) => status === 'running' || status === 'ready' || status === 'waiting')
  // Running nodes first, because they have more progress to show.
  live.sort((a, b) => Number(b.status === 'running') - Number(a.status === 'running'))
  const progresses = new Map<string, JobProgress>()
  for (const { nodeId, jobId } of live.slice(0, maxWithProgress)) {
    const job = jobId === null ? undefined : await jobs.find(viewer.caller.organizationId, jobId)
    if (job) progresses.set(nodeId, jobs.progressOf(job))
  }
  return progresses
}

/** Characters of JSON. Longer inputs are shown only with their single node. */
const maxInputsLength = 16_384

/** Returns the inputs of nodes that have ended, by node. */
async function inputsOf(
  nodes: readonly ExecutionNode[],
  execution: ExecutionRecord,
  { executions, jobs }: Owners<'executions' | 'jobs'>,
) {
  const { organizationId, id } = execution
  const inputsByNode = new Map<string, unknown>()
  const stored = await executions.inputs(organizationId, id, maxInputsLength)
  for (const [nodeId, inputs] of Object.entries(stored)) inputsByNode.set(nodeId, JSON.parse(inputs))
  // Inputs are stored for completed jobs only.
  for (const { nodeId, status, jobId } of nodes) {
    if (status !== 'failed' || jobId === null) continue
    const job = await jobs.find(organizationId, jobId)
    const inputs = job && (await executions.inputsOf(job))
    if (JSON.stringify(inputs ?? null).length <= maxInputsLength) inputsByNode.set(nodeId, inputs)
  }
  return inputsByNode
}

/** Returns the nodes with their inputs and the kept parts of their results, and those parts by node. */
export async function shownNodes(
  execution: ExecutionRecord,
  nodes: readonly ExecutionNode[],
  viewer: Viewer,
  owners: Owners<'cpu' | 'executions' | 'files' | 'jobs'>,
  embedded?: Embedded[],
): Promise<{ nodes: z.input<typeof ExecutionNodeObject>[]; kept: Map<string, ShownKept> }> {
  const kept = await keptOf(execution, nodes, viewer, owners, embedded)
  const progresses = await progressOfNodes(nodes, viewer, owners)
  const inputsByNode = await inputsOf(nodes, execution, owners)
  const shown = nodes.map(node => ({
    ...shownNode(node, viewer, progresses.get(node.nodeId)),
    resolved_inputs: inputsByNode.get(node.nodeId) ?? null,
    result: kept.get(node.nodeId)?.result ?? null,
  }))
  return { nodes: shown, kept }
}

/** Returns the kept parts of the results of completed nodes, by node. */
export async function keptOf(
  { organizationId, id, definition }: ExecutionRecord,
  nodes: readonly ExecutionNode[],
  viewer: UrlReader,
  owners: Owners<'cpu' | 'executions' | 'files'>,
  embedded?: Embedded[],
): Promise<Map<string, ShownKept>> {
  const completed = nodes.filter(node => node.status === 'completed')
  const names = completed.flatMap(({ nodeId, pinned }) => (pinned ? [] : [nodeId]))
  const results = await owners.executions.results(organizationId, id, names)
  const kept = new Map<string, ShownKept>()
  for (const { nodeId, task, pinned } of completed) {
    const { outputs = [], pin } = definition.dag.nodes[nodeId] ?? {}
    const result = results[nodeId]?.result ?? null
    if (pinned) kept.set(nodeId, keptPin(await shownPin(pin, organizationId, viewer, owners), outputs))
    else kept.set(nodeId, await shownKept({ task, outputs }, result, viewer, owners, embedded))
  }
  return kept
}
