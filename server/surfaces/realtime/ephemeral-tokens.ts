import { Failure } from '../../../core/failure.ts'

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
