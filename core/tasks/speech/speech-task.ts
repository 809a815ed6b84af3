import { speechMetering } from '../metering.ts'
import { isRepeatableSample } from '../sampling.ts'
import type { SpeechTaskRecord } from '../task.ts'
import { textInputs } from '../text-inputs.ts'
import { prepareSpeech, speech, voiceFaults } from './speech.ts'
import { SpeechAnswer, SpeechRequest } from './speech-request.ts'
import { linkedSpeech, type SpeechResult } from './speech-result.ts'

/** The record of `std/audio-speech`. */
export const speechTask: SpeechTaskRecord = {
  ...speech,
  ...textInputs,
  family: 'speech',
  runner: 'speech',
  aliases: ['std/speech'],
  category: 'audio',
  request: SpeechRequest,
  otherFields: {},
  modelFaults: voiceFaults,
  result: SpeechAnswer,
  metering: speechMetering,
  isMediaPath: () => false,
  files: { shown: linkedSpeech, ids: ({ file_id }: SpeechResult) => [file_id] },
  isRepeatable: isRepeatableSample,
  prepare: prepareSpeech,
}
