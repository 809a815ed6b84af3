import { z } from 'zod'
import { isLongerThan } from '../json.ts'
import { conversationTask } from '../schemas/task.ts'
import { Condition } from './condition.ts'

/** Limits for definitions in requests; executions have no such limits. Source: the API contract, 1.7.3. */
export const maxNodes = 500
const maxEdges = 1_000
const maxFrames = 100
/** The maximum number of JSON members of a workflow of that size. */
export const maxMembers = 30_000

/** A node's name, as references write it after a dot, or quoted if it has other characters. */
const NodeId = z
  .string()
  .min(1, 'a name must not be empty.')
  .max(64, 'a name has at most 64 characters.')
  .regex(/\S/, 'a name must not be blank.')
  .regex(
    /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}"'\\]+$/u,
    'a name holds no quotes, backslashes, line breaks or control characters.',
  )

/** Inherited members: JSON drops a node `__proto__`, and references never read the others. */
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

/** How many items the list of a node may have: at most, and unless the node says otherwise. */
const mostItems = 10_000
export const defaultMaxItems = 1_000
/** How many of them are queued or run at the same time: at most, and unless the node says otherwise. */
const mostParallel = 256
export const defaultParallel = 100

const Retries = z.strictObject({
  max: z.int().min(0).max(10).describe('Maximum number of retries, 0 to 10.'),
  backoff_ms: z
    .int()
    .min(0)
    .max(3_600_000)
    .optional()
    .describe('Time between two attempts in milliseconds. Default: 1000, doubled for each further one.'),
})

/** How many characters a pinned result may have as JSON. */
const maxPinLength = 256 << 10

/** A result that a node has without running. A function, because each use has its own description. */
export const Pin = () =>
  z.unknown().refine(pin => !isLongerThan(pin, maxPinLength), 'a pinned result has at most 256 kB of JSON.')

/** The most that something may cost, in the currency unit of the prices. */
export const Budget = z.number().positive().max(1_000_000_000)

/** One task of a workflow. Unknown fields are kept with a warning, so that editors may store their own. */
export const WorkflowNode = z
  .looseObject({
    model_id: z
      .string()
      .max(128)
      .nullish()
      .describe(
        'Id of the model. May be missing in a draft; then the workflow cannot be executed. Nodes whose task needs no model have none.',
      ),
    task: z.string().max(64).describe(`Task type, such as \`${conversationTask}\`.`),
    inputs: z
      .record(z.string(), z.unknown())
      .describe(
        'Request of the task without `model`. Strings may hold references: `${input.name}`, `${nodes.id.result.path}`.',
      ),
    outputs: z
      .array(z.string().max(512))
      .max(100)
      .default([])
      .describe(
        'Paths into the result, such as `choices[0].message.content`, whose values the execution shows under `outputs`.',
      ),
    name: z.string().max(256).optional().describe('Display name.'),
    note: z.string().max(2_000).optional().describe('What people should know about the node. No other effect.'),
    timeout: z
      .number()
      .positive()
      .max(86_400)
      .optional()
      .describe('Maximum seconds of one attempt. Default: only the limit of the execution.'),
    budget: Budget.optional().describe(
      'The most that the node may cost, in the currency unit of the prices: it fails before it begins if its estimate is higher. Of `workflow/run`: the budget of the execution. Default: only the budget of the execution.',
    ),
    retries: Retries.optional().describe('Retries after a failure. Default: 2.'),
    on_error: z
      .enum(['fail', 'continue'])
      .default('fail')
      .describe('`fail`: a failure of the node fails the execution. `continue`: nodes after it still run.'),
    cache: z
      .enum(['use', 'off', 'refresh'])
      .optional()
      .describe(
        '`use`: reuse a stored result of the same work. `refresh`: run the node and store its result. `off`: neither. Default: `use` for work that always gives the same result.',
      ),
    when: Condition.optional().describe(
      'The node runs only if this holds once the nodes before it have ended; else it is skipped. Default: it runs.',
    ),
    join: z
      .enum(['all', 'any'])
      .optional()
      .describe(
        '`all`: the node is skipped if a node before it was, unless `defaults` has a value for each reference to its result. `any`: the node runs if at least one of the nodes before it was not skipped; references to results of the others give null. Default: `all`.',
      ),
    defaults: z
      .record(z.string().max(512), z.unknown())
      .optional()
      .describe(
        'Values by reference, such as `nodes.translate.result.text`, for results of nodes that were skipped, or that have failed with `on_error: continue`.',
      ),
    for_each: z
      .union([z.string(), z.array(z.unknown())])
      .optional()
      .describe(
        'A list, nearly always a reference: `${nodes.split.result.chunks}`. The task runs once for each item, with `${item}` and `${index}` in the inputs, and the result of the node is the list of the results in order. Default: the task runs once.',
      ),
    max_parallel: z
      .int()
      .min(1)
      .max(mostParallel)
      .optional()
      .describe(
        `With \`for_each\`: how many items are queued, run or wait at the same time, 1 to ${mostParallel}. Default: ${defaultParallel}.`,
      ),
    max_items: z
      .int()
      .min(1)
      .max(mostItems)
      .optional()
      .describe(
        `With \`for_each\`: the node fails if the list has more items than this, 1 to ${mostItems}. Default: ${defaultMaxItems}.`,
      ),
    on_item_error: z
      .enum(['fail', 'continue'])
      .optional()
      .describe(
        'With `for_each`. `fail`: the first item that fails for good fails the node, and the other items are cancelled. `continue`: its result in the list is null. Default: `fail`.',
      ),
    pin: Pin()
      .optional()
      .describe(
        'A result that the node keeps instead of running, as `result` of the node in an execution shows it, at most 256 kB of JSON. Used only by executions with `use_pins: true`. Null: none.',
      ),
    position: z
      .object({ x: z.number().describe('Pixels from the left.'), y: z.number().describe('Pixels from the top.') })
      .optional()
      .describe('Position in an editor. No other effect.'),
  })
  .meta({ id: 'WorkflowNode', description: 'One step of a workflow: a task, its model and its inputs.' })
export type WorkflowNode = z.output<typeof WorkflowNode>

/** Whether a node has a pin. In the definition of an execution only pins that count are left. */
export const isPinned = ({ pin }: Pick<WorkflowNode, 'pin'>): boolean => pin !== undefined && pin !== null

/** A rectangle behind the nodes of an editor. */
const Frame = z
  .object({
    text: z.string().default('').describe('The heading of the nodes in it, or a note.'),
    position: z
      .object({ x: z.number().describe('Pixels from the left.'), y: z.number().describe('Pixels from the top.') })
      .describe('Position of its upper left corner.'),
    size: z
      .object({
        width: z.number().positive().describe('Width in pixels.'),
        height: z.number().positive().describe('Height in pixels.'),
      })
      .describe('Its size.'),
  })
  .meta({ id: 'WorkflowFrame', description: 'A frame in an editor: a group of the nodes that lie in it, or a note.' })

/** Nodes by id, and the edges between them. `diagnose` checks whether the graph makes sense. */
export const Dag = z
  .strictObject({
    nodes: withoutReserved(
      z
        .record(NodeId, WorkflowNode)
        .refine(nodes => Object.keys(nodes).length <= maxNodes, `a workflow has at most ${maxNodes} nodes.`)
        .meta({ maxProperties: maxNodes }),
    ).describe(`The nodes by their ids, ${maxNodes} at most.`),
    edges: z
      .array(
        z.strictObject({
          from: z.string().describe('Id of the preceding node.'),
          to: z.string().describe('Id of the following node.'),
        }),
      )
      .max(maxEdges)
      .default([])
      .describe(`The edges between the nodes, ${maxEdges} at most.`),
    frames: z
      .array(Frame)
      .max(maxFrames)
      .optional()
      .describe(`Frames of an editor, ${maxFrames} at most. Executions do not keep them.`),
  })
  .meta({ id: 'Dag', description: 'The graph of a workflow: a directed graph without cycles.' })
export type Dag = z.output<typeof Dag>

const parameterTypes = [
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

/** A parameter of a workflow. */
export const Parameter = z
  .strictObject({
    type: z
      .enum(parameterTypes)
      .describe('Type of the value. Media types take an http(s) URL, a `data:` URL or the id of a file.'),
    required: z
      .boolean()
      .optional()
      .describe('Whether a value must be sent. Default: true unless there is a default value.'),
    default: z.unknown().optional().describe('Value that is used when none is sent.'),
    description: z.string().max(1024).nullish().describe('What the parameter is for.'),
    enum: z.array(z.unknown()).max(256).nullish().describe('The allowed values. Default: all of the type.'),
    minimum: z.number().nullish().describe('Smallest allowed number.'),
    maximum: z.number().nullish().describe('Largest allowed number.'),
  })
  .meta({ id: 'WorkflowParameter', description: 'An input parameter of a workflow.' })
export type Parameter = z.output<typeof Parameter>
export type Parameters = Readonly<Record<string, Parameter>>

/** Parameters by name. */
export const ParameterRecord = withoutReserved(z.record(z.string().max(64), Parameter))
