import { presentMembers } from '../../members.ts'
import type { ChatResponse } from '../../schemas/chat.ts'
import { firstOf, type TaskPrediction } from '../prediction.ts'

const stopsOf = (stop: unknown): unknown => (typeof stop === 'string' ? stop.split(',').filter(Boolean) : stop)

/** Predictions that are answered by a chat completion: the output is its text, in a list. */
export const chatPrediction: TaskPrediction = {
  media: [],
  request(input) {
    const { prompt, system_prompt, messages } = input
    const system = typeof system_prompt === 'string' && system_prompt !== ''
    return presentMembers({
      messages: messages ?? [
        ...(system ? [{ role: 'system', content: system_prompt }] : []),
        { role: 'user', content: prompt ?? '' },
      ],
      max_completion_tokens: firstOf(input, 'max_tokens', 'max_new_tokens', 'max_completion_tokens'),
      temperature: input.temperature,
      top_p: input.top_p,
      top_k: input.top_k,
      seed: input.seed,
      presence_penalty: input.presence_penalty,
      frequency_penalty: input.frequency_penalty,
      stop: stopsOf(firstOf(input, 'stop', 'stop_sequences')),
    })
  },
  output: result => [(result as ChatResponse).choices[0]?.message.content ?? ''],
}
