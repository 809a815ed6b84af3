import { z } from 'zod'
import { speechFormats } from '../../core/schemas/speech-format.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import { speechModels, voicesOf } from '../std/voices.ts'

const Voice = z.object({
  id: z.string(),
  name: z.string(),
  language: z.string().nullable().describe('As the engine says it; null where it does not, as of the next two.'),
  gender: z.string().nullable(),
  preview_url: z.string().nullable().describe('The address of a sample.'),
})
const VoiceModel = z.object({
  model_id: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  task: z.literal('std/audio-speech'),
  languages: z.array(z.string()).nullable().describe('Those of its voices; null where the engine names none.'),
  default_voice: z.string().nullable().describe('What speaks where no voice is named; null: the engine decides.'),
  formats: z.array(z.enum(speechFormats)).describe('What can be asked for on this server.'),
  supports_cloning: z.literal(false),
  max_input_characters: z.int(),
  voice_aliases: z
    .record(z.string(), z.string())
    .describe('Further names of voices, each with the voice it stands for.'),
  voices: z.array(Voice).describe('Empty where only a running engine could tell, and none runs or it is busy.'),
})
const VoiceModels = z.object({ models: z.array(VoiceModel) }).meta({ id: 'VoiceModelList' })

export const voiceModelRoutes = (owners: Pick<Owners, 'conversion' | 'jobs' | 'registry'>) => [
  route({
    method: 'GET',
    path: '/api/voice/models',
    scope: 'user:read',
    tag: 'Models',
    summary: 'List the models that speak, with their voices',
    response: VoiceModels,
    handle: async (_input, call) => {
      const { conversion, registry } = owners
      const models = speechModels(call, owners).map(async model => {
        const known = registry.catalog().get(model.id)!.traits.speech!
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
          supports_cloning: false as const,
          max_input_characters: known.longestInput,
          voice_aliases: known.aliases,
          voices,
        }
      })
      return { models: await Promise.all(models) }
    },
  }),
]
