import { z } from 'zod'
import { modelFor } from '../../core/tasks/catalog.ts'
import { speech as speechName } from '../../core/tasks/speech/speech.ts'
import { SpeechRequest } from '../../core/tasks/speech/speech-request.ts'
import { route } from '../route.ts'
import { type SpeechOwners, speech } from './speech.ts'
import { speechModels, voicesOf } from './voices.ts'

const Voices = z
  .object({
    object: z.literal('list'),
    data: z.array(
      z.object({
        model: z.string(),
        voices: z
          .array(z.object({ id: z.string(), name: z.string() }))
          .describe('Empty where only a running engine could tell, and none runs or it is busy.'),
      }),
    ),
  })
  .meta({ id: 'VoiceList' })

/** The OpenAI-compatible routes for speech. */
export const speechRoutes = (owners: SpeechOwners) => [
  route({
    method: 'POST',
    path: '/std/v1/audio/speech',
    scope: 'user:write',
    bucket: 'jobs',
    tag: 'Audio',
    summary: 'Say a text',
    description:
      'The answer is the sound itself, as it is made; with `stream_format: "sse"` it comes as server-sent events, in base64, without a `[DONE]`. As a job (`std/audio-speech`) it becomes a file. What is counted as used is the characters of the text, as input tokens.',
    body: SpeechRequest,
    example: { model: 'infer/tiny-speech', input: 'Hello!', voice: 'alto', response_format: 'wav' },
    answer: speech(owners),
  }),
  route({
    method: 'GET',
    path: '/std/v1/audio/voices',
    scope: 'user:read',
    tag: 'Audio',
    summary: 'List the voices of models that speak',
    query: z.object({ model: z.string().max(256).optional() }),
    response: Voices,
    handle: async ({ query }, call) => {
      if (query.model !== undefined) modelFor(speechName, query.model, owners.registry.catalog())
      const models = speechModels(call, owners).filter(({ id }) => query.model === undefined || query.model === id)
      const data = await Promise.all(
        models.map(async model => {
          const voices = (await voicesOf(model, owners)).map(({ id, name }) => ({ id, name }))
          return { model: model.id, voices }
        }),
      )
      return { object: 'list' as const, data }
    },
  }),
]
