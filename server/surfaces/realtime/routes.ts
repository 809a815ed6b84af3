import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { optionalStringUpTo } from '../../../core/schemas/fields.ts'
import { errorGroups } from '../../http/request/errors.ts'
import { routeOf } from '../../http/request/route.ts'
import type { RealtimeOwners } from './transcribe-samples.ts'

/** Where OpenAI's clients create tokens for browsers. */
const ephemeral = /^\/(?:std\/(?:openai\/)?)?v1\/realtime\/(?:client_secrets|(?:transcription_)?sessions)(?:[/?]|$)/

/** Returns the failure for a URL where OpenAI's clients create tokens for browsers; undefined for other URLs. */
export const noEphemeralTokens = (url: string, request: string): Failure | undefined =>
  ephemeral.test(url)
    ? new Failure(
        'unknown_url',
        `Tokens for browsers are not issued here (${request}): a token cannot create others with less than admin:write. Create one that expires, with 'infer token create'.`,
      )
    : undefined

const route = routeOf({ tag: 'Audio' })

/** The route of the Realtime API: a WebSocket. */
export const realtimeRoutes = (owners: RealtimeOwners) => [
  route('GET /std/v1/realtime', 'user:write', {
    bucket: 'api',
    summary: 'Transcribe audio stream',
    description:
      "Opens a WebSocket for a transcription session of OpenAI's Realtime API: audio is sent as `input_audio_buffer.append` (16 or 24 kHz PCM), text arrives while somebody speaks. Each utterance is a call of the model and counts as a submission. Browsers send the token as the subprotocol `openai-insecure-api-key.<token>`, from an origin in `cors.origins`. Sessions with other intents are refused.",
    errorCodes: [...errorGroups.wait, ...errorGroups.model, 'missing_required_parameter', 'origin_not_allowed'],
    query: z.object({
      intent: optionalStringUpTo(64, 'Always `transcription`.'),
      model: optionalStringUpTo(256, 'Id of the model. Default: the only one; else `session.update` names it.'),
    }),
    status: 101,
    // The package `ws` is loaded with the first connection.
    answer: async exchange => (await import('./answer.ts')).answerRealtime(exchange, owners),
  }),
]
