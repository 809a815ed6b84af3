import { presentMembers } from '../../members.ts'
import { speechMetering } from '../metering.ts'
import { firstOf } from '../prediction.ts'
import { isRepeatableSample } from '../sampling.ts'
import type { FillContext, SpeechTaskRecord } from '../task.ts'
import { sampleText } from '../task-test.ts'
import { requestFor, textTask } from '../text-task.ts'
import { prepareSpeech, speech, voiceFaults } from './speech.ts'
import { linkedSpeech, SpeechAnswer, SpeechRequest, type SpeechResult } from './speech-request.ts'

/** Returns the inputs to store with a job, with the recording as a file of the organization. */
async function withReferenceFile(inputs: Record<string, unknown>, context: FillContext): Promise<object> {
  const request = requestFor(inputs, context)
  const { reference_audio } = request
  if (typeof reference_audio !== 'string') return request
  return { ...request, reference_audio: (await context.take('reference_audio', reference_audio, 'audio')).id }
}

/** The record of text to speech. */
export const speechTask: SpeechTaskRecord = {
  ...speech,
  ...textTask,
  family: 'speech',
  runner: 'speech',
  aliases: ['std/speech'],
  category: 'audio',
  description: 'Turn text into spoken audio. Returns an audio file.',
  path: '/std/v1/audio/speech',
  features: ['voice_cloning'],
  sample: { input: sampleText, response_format: 'wav' },
  form: { panel: 'fields', hidden: [], first: ['response_format'] },
  request: SpeechRequest,
  modelFaults: voiceFaults,
  result: SpeechAnswer,
  metering: speechMetering,
  takesFiles: true,
  isMediaPath: path => path.length === 1 && path[0] === 'reference_audio',
  fill: withReferenceFile,
  files: { shown: linkedSpeech, ids: ({ file_id }: SpeechResult) => [file_id] },
  isRepeatable: isRepeatableSample,
  prediction: {
    media: [],
    request: input =>
      presentMembers({
        input: firstOf(input, 'text', 'input', 'prompt'),
        voice: firstOf(input, 'voice', 'speaker'),
        speed: input.speed,
      }),
    output: result => (result as { audio_url: string }).audio_url,
  },
  prepare: prepareSpeech,
}
