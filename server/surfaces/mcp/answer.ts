import { version } from '../../../core/assets.ts'
import { Failure, invalid } from '../../../core/failure.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import { scopeRefusal } from '../../http/access/auth.ts'
import { readJson } from '../../http/body/body.ts'
import { requireOrigin } from '../../http/connection/cors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { callTool, type ToolOwners } from './call-tool.ts'
import { listResources, readResource, resourceTemplates } from './content.ts'
import { McpMessage, openMcpReply, protocolVersions, type RequestId, RpcError, rpcCodes } from './message.ts'
import { taskTools, workflowTools } from './tools.ts'
export type McpOwners = ToolOwners & Owners<'config' | 'cpu'>

/** The requests that run, by token, session and id; each is cancelled by calling it. */
export type RunningRequests = Map<string, () => void>

/**
 * Answers one message of the Model Context Protocol. Nothing is kept between two messages: a session has an id, so that
 * a client can cancel its own requests, and no state.
 */
export async function answerMcp(exchange: ClientExchange, running: RunningRequests, owners: McpOwners): Promise<void> {
  const { headers } = exchange.req
  requireOrigin(exchange.req, exchange.origin, owners.config.cors.origins)
  const revision = headers['mcp-protocol-version']
  if (revision !== undefined && !(protocolVersions as readonly unknown[]).includes(revision))
    throw invalid(
      'MCP-Protocol-Version',
      `This server does not speak the revision '${String(revision).slice(0, 32)}' of the protocol. Send one of ${protocolVersions.join(', ')}.`,
    )
  // A request of JSON-RPC has an id of its own, and one path serves all methods.
  delete headers['idempotency-key']
  const body = await readJson(exchange, owners)
  if (Array.isArray(body))
    throw new Failure('invalid_type', 'Batches of messages are not supported. Send one message in each request.')
  const { id, method, params = {} } = parsed(McpMessage, body)
  const session = String(headers['mcp-session-id'] ?? '').slice(0, 64)
  const keyOf = (of: unknown) => JSON.stringify([exchange.caller.tokenId, session, of])
  if (method === undefined || id === undefined) {
    if (method === 'notifications/cancelled') running.get(keyOf(params.requestId))?.()
    return exchange.send(202, '')
  }
  await answerRequest(exchange, { id, method, params, key: keyOf(id) }, running, owners)
}

interface Request {
  id: RequestId
  method: string
  params: Record<string, unknown>
  key: string
}

async function answerRequest(
  exchange: ClientExchange,
  { id, method, params, key }: Request,
  running: RunningRequests,
  owners: McpOwners,
): Promise<void> {
  const { progressToken } = (params._meta ?? {}) as { progressToken?: unknown }
  const reply = openMcpReply(exchange, id, progressToken)
  let cancelled = false
  const cancel = () => {
    cancelled = true
    exchange.stop(new Failure('cancelled', 'The client cancelled the request.'))
  }
  // Of two requests with one id, which the protocol forbids, only the first can be cancelled.
  if (!running.has(key)) running.set(key, cancel)
  try {
    if (method === 'initialize') return initialize(exchange, params, reply.result)
    if (method === 'ping') return reply.result({})
    if (method === 'tools/list') return reply.result(await listTools(exchange, cursorOf(params), owners))
    if (method === 'tools/call') {
      const tool = { name: textOf(params, 'name'), input: inputOf(params), reply, isCancelled: () => cancelled }
      return reply.result(await callTool(exchange, tool, owners))
    }
    if (method === 'resources/list') return reply.result(await listResources(exchange, cursorOf(params), owners))
    if (method === 'resources/templates/list') return reply.result({ resourceTemplates })
    if (method === 'resources/read') return reply.result(await readResource(exchange, textOf(params, 'uri'), owners))
    throw new RpcError(rpcCodes.methodNotFound, `The method '${method}' is not supported here.`)
  } catch (thrown) {
    // Logged and answered with 500 like any other, unless the stream has begun.
    if (!(thrown instanceof RpcError) && Failure.from(thrown).code === 'internal_error' && !exchange.res.headersSent)
      throw thrown
    reply.error(thrown)
  } finally {
    if (running.get(key) === cancel) running.delete(key)
  }
}

const instructions =
  'Tools run AI models and saved workflows of this server. Results name files by signed URLs that work for a day. Generation of videos takes minutes: ask for progress.'

function initialize(exchange: ClientExchange, params: Record<string, unknown>, answer: (result: object) => void) {
  const wanted = protocolVersions.find(one => one === params.protocolVersion)
  exchange.header('mcp-session-id', crypto.randomUUID())
  answer({
    protocolVersion: wanted ?? protocolVersions[0],
    capabilities: { tools: {}, resources: {} },
    serverInfo: { name: 'infer', version },
    instructions,
  })
}

/** The tasks are on the first page, before the first workflows. */
async function listTools(exchange: ClientExchange, cursor: string | undefined, owners: McpOwners): Promise<object> {
  // Every tool begins work.
  if (scopeRefusal(exchange.caller, 'user:write')) return { tools: [] }
  const { tools, next } = await workflowTools(exchange, cursor, owners)
  return {
    tools: cursor === undefined ? [...taskTools(exchange, owners), ...tools] : tools,
    ...(next === null ? {} : { nextCursor: next }),
  }
}

function textOf(params: Record<string, unknown>, name: string) {
  const value = params[name]
  if (typeof value === 'string') return value
  throw new RpcError(rpcCodes.invalidParams, `The parameter '${name}' is missing. Send it as a string.`)
}

function inputOf({ arguments: input = {} }: Record<string, unknown>): Record<string, unknown> {
  if (input !== null && typeof input === 'object' && !Array.isArray(input)) return { ...input }
  throw new RpcError(rpcCodes.invalidParams, "The parameter 'arguments' must be an object.")
}

function cursorOf({ cursor }: Record<string, unknown>) {
  if (cursor === undefined || cursor === null) return undefined
  if (typeof cursor === 'string' && cursor.length <= 128) return cursor
  throw new RpcError(rpcCodes.invalidParams, "The parameter 'cursor' is no cursor of a list.")
}
