import type { z } from 'zod'
import type { FailureDetail } from '../failure.ts'
import type { MediaKind } from '../media/media.ts'
import type { Catalog } from '../models/catalog.ts'
import type { Model } from '../models/model.ts'
import type { GenerationTask, ImageTask, SpeechTask, Task, TextTask, TranscriptionTask } from '../schemas/task.ts'
import type { FileRecord, Usage } from '../store/store.ts'
import type { PreparedGeneration } from './generation/prepare.ts'
import type { ResultFile } from './generation/result.ts'
import type { AnswerFormat, Prepared, Shaped } from './prepared.ts'
import type { GenerationInputs } from './protocols/generation-call.ts'
import type { Completed } from './protocols/infer-generation.ts'
import type { PreparedSpeech } from './speech/speech.ts'
import type { PreparedTranscription } from './transcription/transcription.ts'

/** Groups tasks that share code: each family is a folder beside this file. */
export type TaskFamily =
  | 'chat'
  | 'completion'
  | 'embeddings'
  | 'rerank'
  | 'score'
  | 'speech'
  | 'transcription'
  | 'image'
  | 'video'

/** Names a task in messages. */
export interface TaskName<Id extends Task = Task> {
  id: Id
  /** Continues the sentence "The model does not do …": `chat completions`. */
  title: string
}

/** Says what a use of the task is counted in, what it costs, and how much work a job is. */
export interface Metering {
  /** What `Usage` counts. */
  unit: 'tokens' | 'characters' | 'nothing'
  /** Returns millionths of the currency unit. */
  cost(price: Model['price'], usage: Usage): number
  /** Returns the work of a job with these stored inputs, comparable among jobs of one model; null where they do not say. */
  work(inputs: string | null): number | null
}

/** Gives a file its address. */
export type Link = (file: { id: string; name: string }) => string

/** Says which parts of a stored result are files. Stored results name files by id, because addresses expire. */
export interface ResultFiles {
  /** Returns the result as a reader gets it, with addresses. */
  shown(stored: never, link: Link): object
  /** Returns the ids of the files without which the result is of no use. */
  ids(stored: never): string[]
}

/** A place in a JSON value: names of members and indexes of lists. */
export type Path = readonly (string | number)[]

/** What `fill` needs besides the inputs. */
export interface FillContext {
  model: Pick<Model, 'id' | 'extra_params' | 'resolutions'>
  /** Returns the seed of a request that names none. */
  drawSeed: () => number
  /** Stores the media that a field names as a file of the organization. Rejects with Failure that names the field. */
  take: (
    field: string,
    value: string,
    kind: MediaKind,
    options?: { alpha?: boolean | undefined },
  ) => Promise<FileRecord>
}

/** Everything that infer knows about a task. Nothing outside this folder asks which task it has; it reads the record. */
export type TaskRecord = TextTaskRecord | SpeechTaskRecord | TranscriptionTaskRecord | GenerationTaskRecord

/** The record of the task with this id. */
export type RecordOf<Id extends Task> = Id extends TextTask
  ? TextTaskRecord
  : Id extends TranscriptionTask
    ? TranscriptionTaskRecord
    : Id extends SpeechTask
      ? SpeechTaskRecord
      : GenerationTaskRecord

/** Which runner runs the jobs of a task; the runners are opened with their owners and bound by this name. */
export type RunnerName = TaskRecord['runner']

/** What a model offers, as far as inputs depend on it. */
export interface ModelFacts {
  id: string
  /** Undefined where only the engine knows them. */
  voices: readonly string[] | undefined
  /** Other names of voices, each with the voice that it means. */
  voiceAliases: Readonly<Record<string, string>>
  resolutions: Model['resolutions']
}

interface TaskFacts<Id extends Task> extends TaskName<Id> {
  family: TaskFamily
  /** Names that are accepted for the task besides its id. */
  aliases: readonly string[]
  category: 'text' | 'image' | 'video' | 'audio'
  request: z.ZodType
  /** Names that requests may have besides those of the schema, each with the field that it stands for; null for OpenAI fields without effect here. */
  otherFields: Readonly<Record<string, string | null>>
  /** Returns what the inputs ask for that the model lacks, such as a voice. Fields that are not known yet are absent. */
  modelFaults(inputs: Readonly<Record<string, unknown>>, model: ModelFacts): FailureDetail[]
  result: z.ZodType
  metering: Metering
  /** Whether its requests name media, which become files of the organization before a job is stored. */
  takesFiles: boolean
  /** Whether the address of a media file belongs at this place of a request: a reference to an object is read as its address there. */
  isMediaPath: (path: Path) => boolean
  /** Absent where results hold no files. */
  files?: ResultFiles
  /** Whether another run with the same inputs gives the same result, so that both can share one. */
  isRepeatable(inputs: Readonly<Record<string, unknown>>): boolean
  /** Turns the inputs of a workflow node into the inputs that a job of the task is stored with. Rejects with Failure. */
  fill(inputs: Record<string, unknown>, context: FillContext): object | Promise<object>
  /** Returns the request that repeats a job with these stored inputs. */
  requestAgain(stored: never): object
}

/** A task that is answered with text and numbers: one request, one answer. */
export interface TextTaskRecord extends TaskFacts<TextTask> {
  runner: 'text'
  /** Checks a request and translates it for the engine. Pure. Throws Failure for everything that is wrong with it. */
  prepare(request: unknown, catalog: Catalog): Prepared
  /** Translates the engine's answers for the caller. Pure. Throws Failure `worker_error`. */
  shape(answers: Uint8Array[], answerFormat: AnswerFormat): Shaped
}

/** A task that turns text into audio. */
export interface SpeechTaskRecord extends TaskFacts<SpeechTask> {
  runner: 'speech'
  prepare(request: unknown, catalog: Catalog): PreparedSpeech
}

/** A task that turns audio into text. */
export interface TranscriptionTaskRecord extends TaskFacts<TranscriptionTask> {
  runner: 'transcription'
  prepare(request: unknown, catalog: Catalog): PreparedTranscription
  shape(answers: Uint8Array[], answerFormat: AnswerFormat): Shaped
}

/** A task that writes image or video files: always a job. */
export interface GenerationTaskRecord extends TaskFacts<GenerationTask | ImageTask> {
  runner: 'generation'
  /** Checks a request and fills in its defaults. Pure but for the seed. Throws Failure with every wrong field. */
  prepare(
    request: unknown,
    model: Pick<Model, 'extra_params' | 'resolutions'>,
    drawSeed?: () => number,
  ): PreparedGeneration
  /** Returns what the engine is asked to do for stored inputs. */
  engineTask(inputs: Pick<GenerationInputs, 'mask'>): GenerationTask
  /** Returns the result that is stored. `inference` is in seconds, `now` in epoch milliseconds. */
  resultOf(
    inputs: GenerationInputs,
    completed: Completed,
    files: ResultFile[],
    times: { inference: number; now: number },
  ): object
  /** Whether each result is listed in the library. */
  inLibrary: boolean
}
