import { z } from 'zod'
import { jsonOf } from '../../json.ts'
import { nonEmptyText } from '../../schemas/fields.ts'
import { ask } from './ask.ts'
import { plainVoice, synthesize, transcribe, transcribeStream, type Voice } from './openai-audio.ts'
import type { AudioProtocol } from './protocol.ts'

/** The fields of a prepared speech request that Piper's server knows by other names. */
const Spoken = z.looseObject({
  input: z.string(),
  voice: z.string().optional().catch(undefined),
  speed: z.number().optional(),
})

/** Translates a prepared speech request to Piper's form. A slower voice has longer phonemes. Pure. */
export function piperBody(body: string): string {
  const { input, voice, speed, model: _model, response_format: _format, ...extra } = Spoken.parse(JSON.parse(body))
  return JSON.stringify({
    ...extra,
    text: input,
    // A name is that of a voice, or of a speaker of the default voice; the server ignores the one that it does not know.
    voice,
    speaker: voice,
    length_scale: speed === undefined || speed === 1 ? undefined : 1 / speed,
  })
}

const Config = z.looseObject({
  language: z
    .looseObject({ code: z.string().max(64) })
    .optional()
    .catch(undefined),
  speaker_id_map: z.record(z.string(), z.unknown()).optional().catch(undefined),
})

/** Parses Piper's list, an object of configurations by voice. Voices with speakers are listed by these. Pure. */
export function piperVoicesIn(answer: string): Voice[] {
  const read = z.record(nonEmptyText.max(256), Config).safeParse(jsonOf(answer))
  if (!read.success) return []
  return Object.entries(read.data)
    .flatMap(([name, { language, speaker_id_map }]) => {
      const speakers = Object.keys(speaker_id_map ?? {})
      return (speakers.length > 0 ? speakers : [name]).map(id => ({
        ...plainVoice(id),
        language: language?.code ?? null,
      }))
    })
    .slice(0, 2000)
}

/** The server of piper1-gpl (`python3 -m piper.http_server`): JSON to WAV. Read and tried in version 1.8. */
export const piper: AudioProtocol = {
  name: 'piper',
  paths: { synthesize: '/synthesize' },
  // It labels its WAV as text/html.
  synthesize: (lease, request, signal) =>
    synthesize(lease, { ...request, body: piperBody(request.body) }, signal, { alwaysType: 'audio/wav' }),
  async voices(lease, _path, signal) {
    // Each voice has a table of its phonemes.
    return piperVoicesIn((await ask(lease, '/voices', '', 8 << 20, signal, { method: 'GET' })).toString('utf8'))
  },
  transcribe,
  transcribeStream,
}
