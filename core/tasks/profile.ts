import type { Profile } from '../models/name-fields.ts'
import type { ChatRequest } from '../schemas/chat.ts'

type Defaults = Omit<Profile, 'description' | 'price' | 'system_prompt' | 'chat_template_kwargs'>

/** The fields of a profile that requests may set as well. */
const defaultsOf = ({
  description: _description,
  price: _price,
  system_prompt: _prompt,
  chat_template_kwargs: _variables,
  ...defaults
}: Profile): Defaults => defaults

/** Returns a request with the defaults of a profile for the fields that it leaves out or sets to null. */
export function withDefaults<Request extends object>(request: Request, profile: Profile, left: string[] = []): Request {
  const whole = { ...request } as Record<string, unknown>
  for (const [name, value] of Object.entries(defaultsOf(profile)))
    if (whole[name] == null && !left.includes(name)) whole[name] = value
  return whole as Request
}

/**
 * Returns a conversation with the defaults of a profile. Its system prompt comes first; a system message at the start of
 * the request follows it in the same message, because many chat templates refuse a second one.
 */
export function withProfile(request: ChatRequest, profile: Profile | undefined): ChatRequest {
  if (!profile) return request
  const { system_prompt, chat_template_kwargs: variables } = profile
  const whole = withDefaults(request, profile, request.max_completion_tokens == null ? [] : ['max_tokens'])
  if (variables) whole.chat_template_kwargs = { ...variables, ...request.chat_template_kwargs }
  if (system_prompt !== undefined) whole.messages = withSystemPrompt(request.messages, system_prompt)
  return whole
}

function withSystemPrompt(messages: ChatRequest['messages'], text: string): ChatRequest['messages'] {
  const [first, ...others] = messages
  if (first?.role !== 'system' && first?.role !== 'developer') return [{ role: 'system', content: text }, ...messages]
  const content =
    typeof first.content === 'string'
      ? `${text}\n\n${first.content}`
      : [{ type: 'text' as const, text: `${text}\n\n` }, ...first.content]
  return [{ ...first, content }, ...others]
}

/** Returns the inputs and the length of a request for the estimate of its usage: with what a profile adds. */
export const estimatedInputs = (
  inputs: Readonly<Record<string, unknown>>,
  length: number,
  profile: Profile | undefined,
) =>
  profile
    ? { inputs: withDefaults(inputs, profile), length: length + (profile.system_prompt?.length ?? 0) }
    : { inputs, length }
