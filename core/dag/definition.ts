import { z } from 'zod'

/** Of a definition that somebody sends; what carries them out knows no such bounds. Source: the API contract, 1.7.3. */
const maxNodes = 500
const maxEdges = 1_000
/** What JSON of a workflow of that size may have in members. */
export const maxMembers = 30_000

/** A node's name in references: what may follow a dot there, and a little more that has to be quoted. */
const NodeId = z
  .string()
  .min(1, 'a name must not be empty.')
  .max(64, 'a name has at most 64 characters.')
  .regex(/\S/, 'a name must not be blank.')
  .regex(
    /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}"'\\]+$/u,
    'a name holds no quotes, backslashes, line breaks or control characters.',
  )

/** Members that every object has: JSON drops a node `__proto__`, and references never read the others. */
const reserved = new Set(['__proto__', 'constructor', 'prototype'])

/** Refuses reserved names before the record is read, because a record leaves `__proto__` out. */
const withoutReserved = <Schema extends z.ZodType>(record: Schema) =>
  z.preprocess((value, context) => {
    if (value !== null && typeof value === 'object')
      for (const name of Object.keys(value))
        if (reserved.has(name))
          context.addIssue({ code: 'custom', path: [name], message: 'this name is reserved. Choose another name.' })
    return value
  }, record)

const Retries = z.strictObject({
  max: z.int().min(0).max(10).describe('Further attempts after the first.'),
  backoff_ms: z.int().min(0).max(3_600_000).optional().describe('The least time between two attempts.'),
})

/** One task of a workflow. What is not known is kept and warned of, so that an editor may keep things of its own. */
export const WorkflowNode = z
  .looseObject({
    model_id: z.string().max(128).nullish().describe('May be missing while the workflow is being drawn.'),
    task: z.string().max(64),
    inputs: z.record(z.string(), z.unknown()),
    outputs: z.array(z.string().max(512)).max(100).default([]).describe('Paths into the result that are kept.'),
    name: z.string().max(256).optional(),
    timeout: z.number().positive().max(86_400).optional().describe('Seconds for one attempt.'),
    retries: Retries.optional(),
    on_error: z.enum(['fail', 'continue']).default('fail'),
    cache: z.enum(['use', 'off', 'refresh']).optional(),
    position: z.object({ x: z.number(), y: z.number() }).optional(),
  })
  .meta({ id: 'WorkflowNode' })
export type WorkflowNode = z.output<typeof WorkflowNode>

/** Nodes by their ids, and what must be done before what. Whether the graph makes sense is another question (diagnose). */
export const Dag = z
  .strictObject({
    nodes: withoutReserved(
      z
        .record(NodeId, WorkflowNode)
        .refine(nodes => Object.keys(nodes).length <= maxNodes, `a workflow has at most ${maxNodes} nodes.`)
        .meta({ maxProperties: maxNodes }),
    ),
    edges: z
      .array(z.strictObject({ from: z.string(), to: z.string() }))
      .max(maxEdges)
      .default([]),
  })
  .meta({ id: 'Dag' })
export type Dag = z.output<typeof Dag>

export const parameterTypes = [
  'string',
  'number',
  'integer',
  'boolean',
  'object',
  'array',
  'image',
  'audio',
  'video',
  'file',
] as const
export type ParameterType = (typeof parameterTypes)[number]

/** What a workflow may be given when it is run. */
export const Parameter = z
  .strictObject({
    type: z.enum(parameterTypes),
    required: z.boolean().optional().describe('By default where it has no default.'),
    default: z.unknown().optional(),
    description: z.string().max(1024).nullish(),
    enum: z.array(z.unknown()).max(256).nullish(),
    minimum: z.number().nullish(),
    maximum: z.number().nullish(),
  })
  .meta({ id: 'WorkflowParameter' })
export type Parameter = z.output<typeof Parameter>
export type Parameters = Readonly<Record<string, Parameter>>

/** Parameters by their names. */
export const ParameterRecord = withoutReserved(z.record(z.string().max(64), Parameter))
