import type { Task } from '../schemas/task.ts'
import { chatTask } from './chat/chat-task.ts'
import { completionTask } from './completion/completion-task.ts'
import { embeddingsTask } from './embeddings/embeddings-task.ts'
import { imageTasks } from './image/image-tasks.ts'
import { rerankTask } from './rerank/rerank-task.ts'
import { scoreTask } from './score/score-task.ts'
import { speechTask } from './speech/speech-task.ts'
import type { Link, RecordOf, TaskRecord } from './task.ts'
import { transcriptionTasks } from './transcription/transcription-tasks.ts'
import { videoTasks } from './video/video-tasks.ts'

/** Every task that infer can be asked for. */
export const taskRecords: readonly TaskRecord[] = [
  chatTask,
  completionTask,
  embeddingsTask,
  rerankTask,
  scoreTask,
  speechTask,
  ...transcriptionTasks,
  ...imageTasks,
  ...videoTasks,
]

const byName = new Map(
  taskRecords.flatMap(record => [record.id, ...record.aliases].map(name => [name, record] as const)),
)

/** Returns the record of a task. */
export const taskRecord = <Id extends Task>(id: Id): RecordOf<Id> => byName.get(id) as RecordOf<Id>

/** Returns the record of the task with this id or alias; undefined where there is none. */
export const taskNamed = (name: string): TaskRecord | undefined => byName.get(name)

/** Returns how much work a job is, to compare it with others of its model; null where its stored inputs do not say. */
export const workOf = (task: Task, inputs: string | null): number | null => taskRecord(task).metering.work(inputs)

/** Whether stored results of the task name files, which a reader gets by address. */
export const hasFiles = (task: string): boolean => taskNamed(task)?.files !== undefined

/** Returns a stored result as a reader gets it, with the addresses of its files. One without files stays as it is. */
export function shownResult(task: string, stored: unknown, link: Link): unknown {
  const files = taskNamed(task)?.files
  return files && stored !== null ? files.shown(stored as never, link) : stored
}

/** Returns the ids of the files without which a stored result is of no use. */
export const filesOf = (task: string, stored: unknown): string[] => taskNamed(task)?.files?.ids(stored as never) ?? []
