import { presentMembers } from '../../members.ts'
import { transcriptionTasks as ids, operationOf, type TranscriptionTask } from '../../schemas/task.ts'
import { transcriptionMetering } from '../metering.ts'
import { firstOf, type TaskPrediction } from '../prediction.ts'
import type { FillContext, TranscriptionTaskRecord } from '../task.ts'
import { requestFor } from '../text-task.ts'
import {
  audioIn,
  prepareTranscription,
  speakerField,
  type TranscriptionAnswerFormat,
  transcriptionInputs,
  transcriptions,
  withFiles,
} from './transcription.ts'
import { Transcription, type TranscriptionRequest, transcriptionRequests } from './transcription-request.ts'
import { shapeTranscription } from './transcription-shape.ts'

/** Fields that can name the audio by a URL. */
const mediaFields: ReadonlySet<unknown> = new Set(['file', 'url'])

const prediction: TaskPrediction = {
  media: ['audio'],
  request: input =>
    presentMembers({
      url: firstOf(input, 'audio', 'audio_file', 'file', 'url'),
      language: input.language,
      prompt: input.prompt,
    }),
  output: result => result,
}

/** The records of the tasks that turn audio into text. */
export const transcriptionTaskRecords: readonly TranscriptionTaskRecord[] = ids.map(task => ({
  ...transcriptions[task],
  family: 'transcription',
  runner: 'transcription',
  category: 'audio',
  features: ['segments', 'words', 'speakers', 'logprobs', 'transcription_stream'],
  request: transcriptionRequests[task],
  otherFields: {},
  modelFaults: () => [],
  result: Transcription,
  metering: transcriptionMetering,
  takesFiles: true,
  isMediaPath: path =>
    (path.length === 1 && mediaFields.has(path[0])) || (path.length === 2 && path[0] === 'known_speaker_references'),
  // Without a temperature engines decode greedily.
  isRepeatable: ({ temperature }) => !(Number(temperature) > 0),
  prediction: operationOf(task) === 'transcribe' ? prediction : undefined,
  fill: (inputs, context) => withAudioFile(task, inputs, context),
  requestAgain: (stored: object) => stored,
  prepare: (request, catalog) => prepareTranscription(task, request, catalog),
  shape: (answers, answerFormat: TranscriptionAnswerFormat) => shapeTranscription(answers[0]!, answerFormat),
}))

/** Returns the inputs to store with a job, with its audio as a file of the organization. */
async function withAudioFile(
  task: TranscriptionTask,
  inputs: Record<string, unknown>,
  context: FillContext,
): Promise<object> {
  const request = requestFor(inputs, context)
  const { field, value } = audioIn(task, request).sound
  const file = await context.take(field, value, 'audio')
  const extraParams = context.model.extra_params
  const kept = transcriptionInputs(task, request as TranscriptionRequest, { extraParams })
  const recordings = (kept.known_speaker_references ?? []) as string[]
  const speakers: string[] = []
  for (const [at, one] of recordings.entries()) speakers.push((await context.take(speakerField(at), one, 'audio')).id)
  return withFiles(kept, file.id, speakers)
}
