import { errorGroups } from '../../http/request/errors.ts'
import { routeOf } from '../../http/request/route.ts'
import type { McpOwners, RunningRequests } from './answer.ts'
import { McpAnswer, McpMessage } from './message.ts'

const route = routeOf({ tag: 'MCP' })

export function mcpRoutes(owners: McpOwners) {
  const running: RunningRequests = new Map()
  return [
    route('POST /mcp', 'user:read', {
      bucket: 'api',
      summary: 'Send message',
      description:
        'Answers a message of the Model Context Protocol (Streamable HTTP). Tools are the tasks of the models and the saved workflows, and need the scope `user:write`; resources are the files of the organization. Each `tools/call` counts as a submission besides. Work that takes long is answered with server-sent events. There is no stream of the server itself: GET is answered with 405.',
      errorCodes: [...errorGroups.wait, 'origin_not_allowed'],
      body: McpMessage,
      example: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'chat_completion',
          arguments: {
            model: 'infer/tiny-chat',
            messages: [{ role: 'user', content: 'Hello' }],
            max_tokens: 16,
          },
        },
      },
      response: McpAnswer,
      media: ['text/event-stream'],
      otherAnswers: { 202: { description: 'The message needs no answer: a notification. There is no body.' } },
      // Loaded with the first message: few servers have such clients.
      answer: async exchange => (await import('./answer.ts')).answerMcp(exchange, running, owners),
    }),
  ]
}
