import type { AudioProtocol } from './protocol.ts'
import { synthesize } from './synthesize.ts'
import { transcribe, transcribeStream } from './transcribe.ts'
import { askForVoices } from './voices.ts'

/** The routes of OpenAI-style servers for speech: JSON to audio, and a form with a WAV file to JSON. */
export const openaiAudio: AudioProtocol = {
  name: 'openai-audio',
  paths: {
    synthesize: '/v1/audio/speech',
    transcribe: '/v1/audio/transcriptions',
    translate: '/v1/audio/translations',
  },
  synthesize,
  voices: askForVoices,
  transcribe,
  transcribeStream,
}
