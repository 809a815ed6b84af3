import type { z } from 'zod'
import type { Awaitable } from '../dag/execution-state.ts'
import type { FailureDetail } from '../failure.ts'
import type { MediaKind, TakeOptions } from '../media/media.ts'
import type { ModelSet } from '../models/engine-traits.ts'
import type { Feature, Model } from '../models/model.ts'
import type {
  GenerationTask,
  ImageTask,
  SpeechTask,
  StepTask,
  Task,
  TextTask,
  TranscriptionTask,
  WaitTask,
} from '../schemas/task.ts'
import type { FileRecord } from '../store/store.ts'
import type { ValuePath } from '../value-path.ts'
import type { AnswerFormat, CallerAnswer, PreparedRequest } from './engine-request.ts'
import type { PreparedGeneration } from './generation/prepare.ts'
import type { ResultFile } from './generation/result.ts'
import type { Metering } from './metering.ts'
import type { TaskPrediction } from './prediction.ts'
import type { GenerationInputs } from './protocols/generation-call.ts'
import type { Completed } from './protocols/infer-generation.ts'
import type { PreparedSpeech } from './speech/speech.ts'
import type { TaskTest } from './task-test.ts'
import type { PreparedTranscription } from './transcription/transcription.ts'

/** Groups tasks that share code: each family is a folder beside this file. */
export type TaskFamily =
  | 'chat'
  | 'completion'
  | 'embeddings'
  | 'rerank'
  | 'score'
  | 'moderation'
  | 'speech'
  | 'transcription'
  | 'image'
  | 'video'
  | 'step'
  | 'wait'

/** Names a task in messages. */
export interface TaskName<Id extends Task = Task> {
  id: Id
  /** Continues the sentence "The model does not do …": `chat completions`. */
  title: string
}

/** Returns the URL of a file. */
export type FileUrl = (file: { id: string; name: string }) => string

/** Finds the files of a stored result. Stored results name files by id, because URLs expire. */
export interface ResultFiles {
  /** Returns the result as readers get it, with URLs. */
  shown(stored: never, link: FileUrl): object
  /** Returns the ids of the files without which the result is useless. */
  ids(stored: never): string[]
}

/** What `fill` needs besides the inputs. */
export interface FillContext {
  model: Pick<Model, 'id' | 'extra_params' | 'resolutions'> & Partial<Pick<Model, 'comfyui' | 'generation_defaults'>>
  /** Returns the seed for a request without one. */
  drawSeed: () => number
  /** Stores the media that a field names as a file of the organization. Rejects with Failure that names the field. */
  take: (field: string, value: string, kind: MediaKind, options?: TakeOptions) => Promise<FileRecord>
}

/** Everything that infer knows about a task. Code outside this folder reads the record and never compares task ids. */
export type TaskRecord = ModelTaskRecord | StepTaskRecord | WaitTaskRecord

/** The record of a task that a model does. */
export type ModelTaskRecord = TextTaskRecord | SpeechTaskRecord | TranscriptionTaskRecord | GenerationTaskRecord

/** The record of the task with this id. */
export type RecordOf<Id extends Task> = Id extends TextTask
  ? TextTaskRecord
  : Id extends TranscriptionTask
    ? TranscriptionTaskRecord
    : Id extends SpeechTask
      ? SpeechTaskRecord
      : Id extends StepTask
        ? StepTaskRecord
        : Id extends WaitTask
          ? WaitTaskRecord
          : GenerationTaskRecord

/** Names the runner of a task. */
export type RunnerName = TaskRecord['runner']

/** The properties of a model on which valid inputs depend. */
export interface ModelFacts {
  id: string
  /** Undefined if only the engine knows them. */
  voices: readonly string[] | undefined
  /** Other names of voices, each with its voice. */
  voiceAliases: Readonly<Record<string, string>>
  resolutions: Model['resolutions']
  generationDefaults: Model['generation_defaults']
}

/** How the playground of the console asks for a request. */
export interface TaskForm {
  /** `conversation`: turns of a chat. `text`: a text that the model continues. `fields`: a field for each input. */
  panel: 'conversation' | 'text' | 'fields'
  /** Inputs that it leaves out because others do the same, or because they only concern programs. */
  hidden: readonly string[]
  /** Inputs of `optionalFirst` that are shown at first. */
  first: readonly (typeof optionalFirst)[number][]
}

/** Inputs that most tasks with them hide under further parameters. */
export const optionalFirst = ['prompt', 'n', 'size', 'language', 'response_format', 'seed'] as const

interface TaskFacts<Id extends Task> extends TaskName<Id> {
  family: TaskFamily
  /** What it does, in one or two sentences. */
  description: string
  /** The OpenAI-compatible route that answers it. A line of a batch has the same path without `/std`. */
  path?: string
  /** Optional features of an engine that a request can use. */
  features: readonly Feature[]
  /** The command of the terminal that tries a model, whose id replaces MODEL. */
  trial?: string
  /** Absent if it cannot be tested without a file, or if its answer shows no fault. */
  test?: TaskTest
  /** A short request, without its model, that shows whether a model works. Absent if it needs a file of the user. */
  sample?: Readonly<Record<string, unknown>>
  form: TaskForm
  /** Names that are accepted for the task besides its id. */
  aliases: readonly string[]
  category: 'text' | 'image' | 'video' | 'audio'
  request: z.ZodType
  /** Further field names of requests, each with the field that it stands for; null for OpenAI fields without effect. */
  otherFields: Readonly<Record<string, string | null>>
  /** Returns the inputs of a workflow node that it or its model does not support, such as a voice. Unknown fields are absent. */
  modelFaults(inputs: Readonly<Record<string, unknown>>, model: ModelFacts): FailureDetail[]
  result: z.ZodType
  metering: Metering
  /** Whether its requests name media, which become files of the organization before a job is stored. */
  takesFiles: boolean
  /** Whether a media URL belongs at this path of a request: there, a reference to an object is read as its URL. */
  isMediaPath: (path: ValuePath) => boolean
  /** Absent if Replicate's clients cannot run it. */
  prediction?: TaskPrediction
  /** Absent if results have no files. */
  files?: ResultFiles
  /** Whether another run with the same inputs gives the same result, so that both can share one. */
  isRepeatable(inputs: Readonly<Record<string, unknown>>): boolean
  /** Turns the inputs of a workflow node into the stored inputs of a job. Rejects with Failure. */
  fill(inputs: Record<string, unknown>, context: FillContext): object | Promise<object>
  /** Returns the request that repeats a job with these stored inputs. */
  requestAgain(stored: never): object
}

/** A task whose answer is JSON with text or numbers: one request, one answer. */
export interface TextTaskRecord extends TaskFacts<TextTask> {
  runner: 'text'
  /** Checks a request and translates it for the engine. Pure. Throws Failure for an invalid request. */
  prepare(request: unknown, catalog: ModelSet): PreparedRequest
  /** Translates the engine's answers for the caller. Pure. Throws Failure `worker_error`. */
  shape(answers: Uint8Array[], answerFormat: AnswerFormat): CallerAnswer
}

/** A task of workflows that needs no model: a thread does it. */
export interface StepTaskRecord extends TaskFacts<StepTask> {
  runner: 'step'
  /** Returns the result for stored inputs. Pure, runs in a thread. Throws Failure. */
  work(inputs: never): object | Promise<object>
  /**
   * Returns the text between the items of lists that references write into the texts of a node. Absent if they are written
   * as JSON, as in all other tasks.
   */
  listSeparator?: (inputs: Readonly<Record<string, unknown>>) => unknown
  /** Whether its job starts an execution, whose end ends it, instead of `work`. */
  runsWorkflow?: true
}

/** A task of workflows that needs no model and that something outside of infer ends. */
export interface WaitTaskRecord extends TaskFacts<WaitTask> {
  runner: 'wait'
  awaits: Extract<Awaitable, 'approval' | 'event' | 'time'>
  /** When a wait that begins now ends by itself, and when its reminder is due, epoch milliseconds; null: never. */
  timesOf(stored: never, now: number): { dueAt: number | null; remindAt: number | null }
  /** Returns the result of a wait that ends by itself at this time, epoch milliseconds; undefined: it fails. */
  resultAtDue(stored: never, at: number): object | undefined
}

/** A task that turns text into audio. */
export interface SpeechTaskRecord extends TaskFacts<SpeechTask> {
  runner: 'speech'
  prepare(request: unknown, catalog: ModelSet): PreparedSpeech
}

/** A task that turns audio into text. */
export interface TranscriptionTaskRecord extends TaskFacts<TranscriptionTask> {
  runner: 'transcription'
  prepare(request: unknown, catalog: ModelSet): PreparedTranscription
  shape(answers: Uint8Array[], answerFormat: AnswerFormat): CallerAnswer
}

/** A task that writes image or video files: always a job. */
export interface GenerationTaskRecord extends TaskFacts<GenerationTask | ImageTask> {
  runner: 'generation'
  /** Checks a request and fills in its defaults. Pure but for the seed. Throws Failure with every wrong field. */
  prepare(
    request: unknown,
    model: Pick<Model, 'extra_params' | 'resolutions'> & Partial<Pick<Model, 'comfyui' | 'generation_defaults'>>,
    drawSeed?: () => number,
  ): PreparedGeneration
  /** Returns the task of the engine for stored inputs. */
  engineTask(inputs: Pick<GenerationInputs, 'mask'>): GenerationTask
  /** Returns the result that is stored. `inference` is in seconds, `now` in epoch milliseconds. */
  resultOf(
    inputs: GenerationInputs,
    completed: Completed,
    files: ResultFile[],
    times: { inference: number; now: number },
  ): object
}
