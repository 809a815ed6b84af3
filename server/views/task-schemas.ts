import { z } from 'zod'
import { Task } from '../../core/schemas/task.ts'
import { taskNamed, taskRecord } from '../../core/tasks/registry.ts'

/** The id of a task in a request, or another name of it. */
export const TaskName = z.preprocess(
  name => (typeof name === 'string' ? (taskNamed(name)?.id ?? name) : name),
  Task.optional(),
)

type JsonSchema = z.core.JSONSchema.BaseSchema

/** Options for converting zod schemas to the JSON Schemas of the reference. */
export const jsonSchemaOptions = {
  io: 'input',
  unrepresentable: 'any',
  override({ jsonSchema }: { jsonSchema: JsonSchema }) {
    // Zod adds the bounds of JavaScript's safe integers, which are no limits of the API.
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
    for (const property of Object.values(jsonSchema.properties ?? {}))
      if (typeof property === 'object' && property.const !== undefined)
        property.description ??= `Always \`${String(property.const)}\`.`
  },
} as const

/** A JSON Schema of an object. */
export interface ObjectSchema {
  $schema?: string
  type?: string
  properties?: Record<string, object>
  required?: string[]
  $defs?: Record<string, object>
}

interface Schemas {
  input: ObjectSchema
  output: ObjectSchema
}
/** Created when somebody first asks: few servers are asked. */
const schemas = new Map<Task, Schemas>()

/** Returns the JSON Schemas of a task: of its request without `model` and the fields of streams, and of its result. */
export function schemasOfTask(task: Task): Schemas {
  const known = schemas.get(task)
  if (known) return known
  const { request, result } = taskRecord(task)
  const { properties: all = {}, required = [], $defs } = schemaOf(request)
  const { model: _, stream: __, stream_options: ___, ...properties } = all
  const made: Schemas = {
    input: {
      type: 'object',
      properties,
      required: required.filter(name => name in properties),
      ...($defs ? { $defs } : {}),
    },
    output: schemaOf(result),
  }
  schemas.set(task, made)
  return made
}

/** Returns the JSON Schema of an object. A schema with a name is a reference to its definition, which is returned. */
function schemaOf(schema: z.ZodType): ObjectSchema {
  const {
    $schema: _,
    $ref,
    $defs = {},
    ...rest
  } = z.toJSONSchema(schema, jsonSchemaOptions) as ObjectSchema & { $ref?: string }
  if ($ref === undefined) return { ...rest, ...(Object.keys($defs).length > 0 ? { $defs } : {}) }
  const { [$ref.slice('#/$defs/'.length)]: own, ...others } = $defs
  return { ...own, ...(Object.keys(others).length > 0 ? { $defs: others } : {}) }
}
