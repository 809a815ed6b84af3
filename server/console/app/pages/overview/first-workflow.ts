import { api, dataOf } from '../../api/client.ts'
import { firstStepsText as text } from '../../text/first-steps.ts'

const story = '${nodes.write.result.choices[0].message.content}'

/** Stores a workflow of the included models, in which one result goes to two others. Resolves with its id. */
export async function createFirstWorkflow(): Promise<string> {
  const { workflow } = await dataOf(
    api.POST('/api/workflows', {
      body: {
        name: text.workflowName,
        description: text.workflowAbout,
        dag: {
          nodes: {
            write: {
              task: 'std/chat-completion',
              model_id: 'infer/tiny-chat',
              inputs: { messages: [{ role: 'user', content: text.workflowPrompt }], max_tokens: 24 },
            },
            paint: {
              task: 'slug/text-to-image',
              model_id: 'infer/demo',
              inputs: { prompt: story, width: 512, height: 512 },
            },
            read: {
              task: 'std/audio-speech',
              model_id: 'infer/tiny-speech',
              inputs: { input: story, voice: 'alto' },
            },
          },
        },
      },
    }),
  )
  return workflow.id
}
