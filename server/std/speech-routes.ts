import { z } from 'zod'
import { modelAllowed } from '../../core/accounts/accounts.ts'
import { Failure } from '../../core/failure.ts'
import { Departure } from '../../core/leaving.ts'
import type { Model } from '../../core/models/model.ts'
import { SpeechRequest } from '../../core/tasks/audio/speech-request.ts'
import { askForVoices, type Voice } from '../../core/tasks/audio/voices.ts'
import { modelFor } from '../../core/tasks/catalog.ts'
import { speechTask } from '../../core/tasks/tasks.ts'
import type { Call } from '../call.ts'
import { route } from '../route.ts'
import { speech } from './speech.ts'

/** An engine that does not say at once what voices it has is not waited for. */
const patienceMs = 2_000

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

/** What is configured or known of its engine; otherwise what the engine says, if it runs and has a moment. */
async function voicesOf(model: Model, call: Call): Promise<Voice[]> {
  const { fleet, registry } = call.owners
  const traits = registry.catalog().get(model.id)?.traits
  const known = traits?.speech?.voices
  if (known) return known.map(id => ({ id, name: id }))
  const path = traits?.paths[speechTask]
  const lease = path === undefined ? undefined : fleet.spare(model.id)
  if (!lease) return []
  const enough = new Departure()
  const timer = setTimeout(
    () => enough.abort(new Failure('timeout', 'The engine did not name its voices.')),
    patienceMs,
  )
  try {
    return await askForVoices(lease, path!, enough)
  } catch {
    // Many engines have no such route; a list of voices is worth no error.
    return []
  } finally {
    clearTimeout(timer)
    lease.release()
  }
}

export const speechRoutes = [
  route({
    method: 'POST',
    path: '/std/v1/audio/speech',
    aliases: ['/v1/audio/speech', '/std/openai/v1/audio/speech'],
    scope: 'user:write',
    tag: 'Audio',
    summary: 'Say a text',
    description:
      'The answer is the sound itself, as it is made; with `stream_format: "sse"` it comes as server-sent events, in base64, without a `[DONE]`. As a job (`std/audio-speech`) it becomes a file. What is counted as used is the characters of the text, as input tokens.',
    body: SpeechRequest,
    example: { model: 'infer/tiny-speech', input: 'Hello!', voice: 'alto', response_format: 'wav' },
    answer: speech,
  }),
  route({
    method: 'GET',
    path: '/std/v1/audio/voices',
    aliases: ['/v1/audio/voices', '/std/openai/v1/audio/voices'],
    scope: 'user:read',
    tag: 'Audio',
    summary: 'List the voices of models that speak',
    query: z.object({ model: z.string().max(256).optional() }),
    response: Voices,
    handle: async ({ query }, call) => {
      const { registry } = call.owners
      if (query.model !== undefined) modelFor(speechTask, query.model, registry.catalog())
      const models = registry
        .all()
        .filter(
          ({ id, enabled, tasks }) =>
            enabled &&
            tasks.includes(speechTask) &&
            modelAllowed(call.caller.token.models, id) &&
            (query.model === undefined || query.model === id),
        )
      const data = await Promise.all(
        models.map(async model => ({ model: model.id, voices: await voicesOf(model, call) })),
      )
      return { object: 'list' as const, data }
    },
  }),
]
