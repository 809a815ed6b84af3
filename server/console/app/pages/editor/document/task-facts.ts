import type { JsonSchema } from '../../../api/json-schema.ts'

/** A task as `GET /api/tasks` returns it, as far as the editor reads it. */
export interface TaskFacts {
  id: string
  title: string
  description: string
  category: string
  media_fields: string[]
  models: string[]
  input_schema: JsonSchema
  output_schema: JsonSchema
}
