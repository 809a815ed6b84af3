import { parsed } from '../schemas/issues.ts'
import { anthropicForm } from './anthropic/anthropic-form.ts'
import type { ChatAnswerFacts, ChatForm, ChatStreamForm, FormNotes } from './chat-form.ts'
import { cohereEmbedForm } from './cohere/cohere-embed.ts'
import { cohereForm } from './cohere/cohere-form.ts'
import { ollamaChatForm, ollamaGenerateForm } from './ollama/ollama-chat-form.ts'
import { ollamaEmbeddingsForm, ollamaEmbedForm } from './ollama/ollama-embed-forms.ts'
import { responseForm } from './responses/response-form.ts'

/** The names of the other forms. */
export type ChatFormName =
  | 'anthropic'
  | 'cohere'
  | 'cohere-embed'
  | 'ollama-chat'
  | 'ollama-generate'
  | 'ollama-embed'
  | 'ollama-embeddings'
  | 'responses'

// A form gets only requests that its own schema has checked.
// oxlint-disable-next-line no-explicit-any
const forms: Record<ChatFormName, ChatForm<any, any, any>> = {
  anthropic: anthropicForm,
  cohere: cohereForm,
  'cohere-embed': cohereEmbedForm,
  'ollama-chat': ollamaChatForm(),
  'ollama-generate': ollamaGenerateForm(),
  'ollama-embed': ollamaEmbedForm(),
  'ollama-embeddings': ollamaEmbeddingsForm,
  responses: responseForm,
}

/**
 * Turns a request in another form into the body of a chat completion, with what is left out of it. `context` is what the form needs besides. Throws
 * Failure for an invalid request.
 */
export function chatBodyOf(
  name: ChatFormName,
  raw: unknown,
  context?: unknown,
): { body: Record<string, unknown>; request: unknown; notes: FormNotes } {
  const form = forms[name]
  const request = parsed(form.schema, raw)
  const stream = form.isStream(request)
  const notes: FormNotes = { ignored: [], schemas: [] }
  const streamed = stream ? { stream, stream_options: { include_usage: true } } : {}
  return {
    body: { ...form.chatBody(request, context, notes), ...streamed },
    request: form.remembered?.(request, context) ?? request,
    notes,
  }
}

/** Returns the answer in the form of its request, as JSON text. `completion` is the JSON of the chat completion. */
export const formedAnswer = (
  { name, request }: { name: ChatFormName; request: unknown },
  completion: string,
  facts: ChatAnswerFacts,
): string => JSON.stringify(forms[name].answer(request, JSON.parse(completion), facts))

/** Begins the translation of a streamed answer into the form of its request. */
export const formedStream = (
  { name, request }: { name: ChatFormName; request: unknown },
  facts: ChatAnswerFacts,
): ChatStreamForm => forms[name].stream(request, facts)
