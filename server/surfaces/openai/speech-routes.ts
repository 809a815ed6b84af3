import { z } from 'zod'
import { string } from '../../../core/schemas/fields.ts'
import { modelFor } from '../../../core/tasks/catalog.ts'
import { speech as speechName } from '../../../core/tasks/speech/speech.ts'
import { SpeechRequest } from '../../../core/tasks/speech/speech-request.ts'
import { errorGroups } from '../../http/request/error-groups.ts'
import { routeOf } from '../../http/request/route.ts'
import { respondAsync } from '../../views/job-created.ts'
import { speechModels, voicesOf } from '../../views/voices.ts'
import { type SpeechOwners, speechHandler } from './speech.ts'

const route = routeOf({ tag: 'Audio' })

const Voices = z
  .object({
    object: z.literal('list'),
    data: z
      .array(
        z.object({
          model: string('Id of the model.'),
          voices: z
            .array(
              z.object({
                id: string('Id of the voice: the value of `voice` in a request.'),
                name: string('Name for people.'),
              }),
            )
            .describe('The voices. Empty if only a running engine can report them and none runs, or it is busy.'),
        }),
      )
      .describe('Models that speak, with their voices.'),
  })
  .meta({ id: 'VoiceList', description: 'Voices by model.' })

/** The OpenAI-compatible routes for speech. */
export const speechRoutes = (owners: SpeechOwners) => [
  route('POST /std/v1/audio/speech', 'user:write', {
    bucket: 'jobs',
    summary: 'Create speech',
    description:
      'Speaks a text. The answer is the audio while it is generated; with `stream_format: "sse"` it is a stream of server-sent events with audio in base64, without a `[DONE]`. As a job (`std/audio-speech`) the audio becomes a file. With `reference_audio` it speaks with the voice of a recording, if the engine clones voices. Speech is metered in characters.',
    media: ['audio/mpeg', 'audio/wav', 'audio/ogg', 'audio/aac', 'audio/flac', 'audio/pcm'],
    events: 'SpeechEvent',
    otherAnswers: respondAsync,
    errorCodes: [...errorGroups.submit, ...errorGroups.wait, ...errorGroups.media],
    body: SpeechRequest,
    example: { model: 'infer/tiny-speech', input: 'Hello!', voice: 'alto', response_format: 'wav' },
    answer: speechHandler(owners),
  }),
  route('GET /std/v1/audio/voices', 'user:read', {
    summary: 'List voices',
    description:
      'Returns the voices of the models that speak. For a running engine the list includes the voices that the engine reports.',
    errorCodes: ['invalid_value', 'model_not_found', 'unsupported_task'],
    query: z.object({ model: z.string().max(256).optional().describe('Only voices of this model.') }),
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
