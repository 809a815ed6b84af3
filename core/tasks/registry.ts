import type { Feature } from '../models/model.ts'
import type { Task } from '../schemas/task.ts'
import { chatTask } from './chat/chat-completion.ts'
import { completionTask } from './completion/completion.ts'
import { embeddingsTask } from './embeddings/embeddings.ts'
import { videoTasks } from './generation/slug-task.ts'
import { imageTaskRecords } from './image/image-tasks.ts'
import type { Estimate } from './metering.ts'
import { moderationTask } from './moderation/moderation.ts'
import { rerankTask } from './rerank/rerank.ts'
import { scoreTask } from './score/score.ts'
import { speechTask } from './speech/speech.ts'
import { extractTask } from './steps/extract.ts'
import { runWorkflowTask } from './steps/run-workflow.ts'
import { selectTask } from './steps/select.ts'
import { splitTask } from './steps/split.ts'
import { templateTask } from './steps/template.ts'
import type { FileUrl, ModelTaskRecord, RecordOf, TaskRecord } from './task.ts'
import { transcriptionTaskRecords } from './transcription/transcription-tasks.ts'
import { approvalTask } from './waits/approval.ts'
import { eventTask } from './waits/event.ts'
import { untilTask } from './waits/until.ts'

/** The records of the tasks that models do. */
export const modelTaskRecords: readonly ModelTaskRecord[] = [
  chatTask,
  completionTask,
  embeddingsTask,
  rerankTask,
  scoreTask,
  moderationTask,
  speechTask,
  ...transcriptionTaskRecords,
  ...imageTaskRecords,
  ...videoTasks,
]

/** The records of all tasks. */
export const taskRecords: readonly TaskRecord[] = [
  ...modelTaskRecords,
  templateTask,
  splitTask,
  extractTask,
  selectTask,
  approvalTask,
  eventTask,
  untilTask,
  runWorkflowTask,
]

const byName = new Map(
  taskRecords.flatMap(record => [record.id, ...record.aliases].map(name => [name, record] as const)),
)

/** Returns the record of a task. */
export const taskRecord = <Id extends Task>(id: Id): RecordOf<Id> => byName.get(id) as RecordOf<Id>

/** Returns the record of the task with this id or alias; undefined without one. */
export const taskNamed = (name: string): TaskRecord | undefined => byName.get(name)

/** Whether a model does the task with this id or alias. */
export const needsModel = (name: string): boolean => !isWithoutModel(taskNamed(name))

/** Whether the record is of a task that needs no model. */
export const isWithoutModel = (record: Pick<TaskRecord, 'runner'> | undefined): boolean =>
  record?.runner === 'step' || record?.runner === 'wait'

/** Whether a node with this task runs a workflow, instead of work of its own. */
export const runsWorkflow = (record: TaskRecord | undefined): boolean =>
  record?.runner === 'step' && record.runsWorkflow === true

/** Returns the work of a job, to compare it with other jobs of its model; null if its stored inputs do not tell. */
export const workOf = (task: Task, inputs: string | null): number | null => taskRecord(task).metering.work(inputs)

/** Returns the most that a request other than of a text task can use; its fields are those of the stored inputs. */
export const estimateOf = (task: Task, inputs: object, audioBytes = 0): Estimate =>
  taskRecord(task).metering.estimate({ inputs: { ...inputs }, length: 0, contextLength: null, audioBytes })

/** Whether stored results of the task name files, which readers get as URLs. */
export const hasFiles = (task: string): boolean => taskNamed(task)?.files !== undefined

/**
 * Returns a stored result as readers get it, with the URLs of its files. A result without files is returned unchanged. A
 * list is that of a node with `for_each`: the results of its items, null for those that have failed.
 */
export function shownResult(task: string, stored: unknown, link: FileUrl): unknown {
  const files = taskNamed(task)?.files
  if (!files || stored === null) return stored
  if (Array.isArray(stored)) return stored.map(one => shownResult(task, one, link))
  return files.shown(stored as never, link)
}

/** Returns the ids of the files without which a stored result is useless. */
export const filesOf = (task: string, stored: unknown): string[] => taskNamed(task)?.files?.ids(stored as never) ?? []

/** The features of an engine that count for each task of a model, in the order in which the engine has them. */
export const featuresByTask = (
  tasks: readonly Task[],
  features: ReadonlySet<Feature>,
): Partial<Record<Task, Feature[]>> =>
  Object.fromEntries(tasks.map(task => [task, [...features].filter(one => taskRecord(task).features.includes(one))]))
