import { Failure } from '../../failure.ts'
import type { ChatForm } from '../chat-form.ts'
import { ollamaAnswer, ollamaStream, type ShowPart } from './ollama-answer.ts'
import { ollamaContent, sharedBody } from './ollama-body.ts'
import { onlyLoads } from './ollama-load.ts'
import { OllamaGenerateRequest } from './ollama-schemas.ts'

const response: ShowPart = ({ content, thinking }) => ({
  response: content,
  ...(thinking === undefined ? {} : { thinking }),
})

/** What to use in place of a field that a chat cannot have. */
const instead = {
  suffix: 'Text in the middle is not supported. Leave it out.',
  template: 'Every model has its own template. Leave it out.',
  raw: 'Send the prompt to POST /std/v1/completions, which uses no template.',
  context: 'Send the conversation to POST /ollama/api/chat.',
} as const

/** Throws Failure `unsupported_parameter` for a field that changes the answer and is not supported. */
function refuseUnsupported(request: OllamaGenerateRequest): void {
  for (const [param, hint] of Object.entries(instead)) {
    const value = request[param as keyof typeof instead]
    if (value == null || value === false || value === '' || (Array.isArray(value) && value.length === 0)) continue
    throw new Failure('unsupported_parameter', `'${param}' is not supported here. ${hint}`, { param })
  }
}

const factsOf = ({ model, think }: OllamaGenerateRequest) => ({ model, thinks: think !== false, show: response })

/** Ollama's `/api/generate`, answered as a chat with one message. `now`: epoch milliseconds. */
export const ollamaGenerateForm = (now: () => number = Date.now): ChatForm<OllamaGenerateRequest> => ({
  schema: OllamaGenerateRequest,
  isStream: ({ stream }) => stream !== false,
  chatBody(request) {
    refuseUnsupported(request)
    const { system, prompt, images } = request
    if (!prompt && !images?.length) throw onlyLoads(request, 'prompt')
    return {
      ...sharedBody(request),
      messages: [
        ...(system ? [{ role: 'system', content: system }] : []),
        { role: 'user', content: ollamaContent(prompt, images, '') },
      ],
    }
  },
  remembered: ({ model, think }) => ({ model, think }),
  answer: (request, completion, facts) => ollamaAnswer(factsOf(request), completion, facts, now),
  stream: (request, facts) => ollamaStream(factsOf(request), facts, now),
})
