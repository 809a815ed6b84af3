import { z } from 'zod'
import { array, boolean, integer, namedObject, nullable, nullableString, string } from '../../../core/schemas/fields.ts'
import { speechFormats } from '../../../core/schemas/speech-format.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { speechModels, voicesOf } from '../../views/voices.ts'

const route = routeOf({ tag: 'Models' })

const Voice = z.object({
  id: string('Id of the voice: the value of `voice` in a request.'),
  name: string('Name for people.'),
  language: nullableString('Language as the engine reports it; null if it does not.'),
  gender: nullableString('Gender as the engine reports it; null if it does not.'),
  preview_url: nullableString('URL of a sample as the engine reports it; null if it does not.'),
})
const VoiceModel = z.object({
  model_id: string('Id of the model.'),
  name: string('Name for people.'),
  description: nullableString('`description` in `infer.yaml`; null without one.'),
  task: z.literal('std/audio-speech'),
  languages: nullable(z.array(z.string()), 'Languages of its voices; null if the engine reports none.'),
  default_voice: nullableString('Voice of a request that names none; null if the engine decides.'),
  formats: array('Formats that can be requested on this server.', z.enum(speechFormats)),
  supports_cloning: boolean('Whether a request may have `reference_audio`, a recording of the voice to speak with.'),
  max_input_characters: integer('Most characters of a text.'),
  voice_aliases: z.record(z.string(), z.string()).describe('Further names of voices, each with the id of its voice.'),
  voices: array('The voices. Empty if only a running engine can report them and none runs, or it is busy.', Voice),
})
const VoiceModels = namedObject('VoiceModelList', 'Models that speak.', {
  models: array('Models that the token may use.', VoiceModel),
})

export const voiceModelRoutes = (owners: Owners<'conversion' | 'jobs' | 'registry'>) => [
  route('GET /api/voice/models', 'user:read', {
    summary: 'List speech models',
    description:
      'Returns the models that speak, with their formats, limits and voices. For a running engine the list includes the voices that the engine reports.',
    response: VoiceModels,
    handle: async (_input, exchange) => {
      const { conversion, registry } = owners
      const models = speechModels(exchange, owners).map(async model => {
        const { features, speech } = registry.catalog().get(model.id)!.traits
        const known = speech!
        const voices = await voicesOf(model, owners)
        const languages = new Set(voices.flatMap(({ language }) => language ?? []))
        return {
          model_id: model.id,
          name: model.id,
          description: model.description ?? null,
          task: 'std/audio-speech' as const,
          languages: languages.size > 0 ? [...languages] : null,
          default_voice: known.voices?.[0] ?? null,
          formats: await conversion.offered(known.formats),
          supports_cloning: features.has('voice_cloning'),
          max_input_characters: known.longestInput,
          voice_aliases: known.aliases,
          voices,
        }
      })
      return { models: await Promise.all(models) }
    },
  }),
]
