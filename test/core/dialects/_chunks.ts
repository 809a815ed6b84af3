import type { ChatChunk } from '../../../core/dialects/chat-form.ts'

type Delta = ChatChunk['choices'][number]['delta']

/** Returns the chunks of a streamed answer with these deltas. */
export const chunksOf = (deltas: Delta[], finish: string, usage?: ChatChunk['usage']): ChatChunk[] => {
  const head = { id: 'chatcmpl-7', created: 1, model: 'm' }
  return [
    ...deltas.map(delta => ({ ...head, choices: [{ index: 0, delta, finish_reason: null }] })),
    { ...head, choices: [{ index: 0, delta: {}, finish_reason: finish }] },
    ...(usage ? [{ ...head, choices: [], usage }] : []),
  ]
}

/** Parses the text of a stream as its events: the name and the data of each. */
export const eventsOf = (text: string): [string, Record<string, unknown>][] =>
  text
    .split('\n\n')
    .filter(Boolean)
    .map(frame => {
      const [name, data] = frame.split('\n')
      return [name!.slice('event: '.length), JSON.parse(data!.slice('data: '.length)) as Record<string, unknown>]
    })
