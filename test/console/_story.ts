/** A workflow that writes about a topic, and paints what was written. */
export const story = {
  name: 'Story',
  parameters: { topic: { type: 'string', default: 'the sea' } },
  dag: {
    nodes: {
      write: {
        model_id: 'infer/tiny-chat',
        task: 'std/chat-completion',
        inputs: { messages: [{ role: 'user', content: 'Write about ${input.topic}.' }], max_tokens: 8 },
      },
      paint: {
        model_id: 'infer/demo',
        task: 'slug/text-to-image',
        inputs: { prompt: '${nodes.write.result.choices[0].message.content}', seed: 1 },
      },
    },
  },
}
