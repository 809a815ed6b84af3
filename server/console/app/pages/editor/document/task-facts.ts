import type { JsonSchema, Schema } from '../../../api/schema.ts'

/** A task as `GET /api/tasks` returns it, as far as the editor reads it. */
export interface TaskFacts {
  id: Schema<'Task'>
  title: string
  description: string
  category: string
  media_fields: string[]
  models: string[]
  form: { panel: string }
  input_schema: JsonSchema
  output_schema: JsonSchema
}
