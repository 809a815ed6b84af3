import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { integer, string } from '../../../core/schemas/fields.ts'

/** Revisions of the Model Context Protocol that this server speaks, newest first. */
export const protocolVersions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const

/** The id of a request: a client chooses it. */
export type RequestId = string | number

/** A message of JSON-RPC 2.0. Members of `params` depend on the method and are read there. */
export const McpMessage = z
  .looseObject({
    jsonrpc: z.literal('2.0').describe('Version of JSON-RPC: always `2.0`.'),
    id: z
      .union([z.string().max(256), z.number()])
      .optional()
      .describe('Id of the request, by which its answer is recognized. A notification has none.'),
    method: z
      .string()
      .max(128)
      .optional()
      .describe('Method, such as `tools/call`. An answer to a request of the server has none.'),
    params: z.record(z.string(), z.unknown()).optional().describe('Parameters of the method.'),
  })
  .meta({ id: 'McpMessage', description: 'A request or notification of the Model Context Protocol (JSON-RPC 2.0).' })
export type McpMessage = z.output<typeof McpMessage>

/** The answer to a request. */
export const McpAnswer = z
  .object({
    jsonrpc: z.literal('2.0').describe('Version of JSON-RPC: always `2.0`.'),
    id: z.union([z.string(), z.number()]).describe('Id of the request.'),
    result: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Result of the method; absent if the request failed.'),
    error: z
      .object({
        code: integer('Error code of JSON-RPC.'),
        message: string('What happened, as a sentence.'),
        data: z.unknown().describe('The same error in the common format, if it has a code of its own.'),
      })
      .optional()
      .describe('Why the request failed; absent if it did not.'),
  })
  .meta({ id: 'McpAnswer', description: 'An answer of the Model Context Protocol (JSON-RPC 2.0).' })

/** Error codes of JSON-RPC and of the Model Context Protocol. */
export const rpcCodes = { methodNotFound: -32601, invalidParams: -32602, internal: -32603, resourceNotFound: -32002 }

/** A request that is answered with an error of JSON-RPC: the method or the thing that it names does not exist. */
export class RpcError extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

export const mcpResultText = (id: RequestId, result: object): string => JSON.stringify({ jsonrpc: '2.0', id, result })

/** Returns the answer to a request that failed, as JSON text. */
export function errorText(id: RequestId, thrown: unknown): string {
  const body =
    thrown instanceof RpcError ? { code: thrown.code, message: thrown.message } : failureBody(Failure.from(thrown))
  return JSON.stringify({ jsonrpc: '2.0', id, error: body })
}

function failureBody(failure: Failure) {
  const { code, message, type, param } = failure
  const rpc = failure.status >= 400 && failure.status < 500 ? rpcCodes.invalidParams : rpcCodes.internal
  return { code: rpc, message, data: { code, type, param: param ?? null } }
}
