import { z } from 'zod'
import {
  anyObject,
  array,
  boolean,
  namedObject,
  nullable,
  nullableString,
  object,
  oneOf,
  string,
} from '../../../core/schemas/fields.ts'
import { Task } from '../../../core/schemas/task.ts'
import { needsModel, taskRecords } from '../../../core/tasks/registry.ts'
import { optionalFirst } from '../../../core/tasks/task.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { schemasOfTask } from '../../views/task-schemas.ts'
import { entryAllowed } from '../../work/allowed-models.ts'

const route = routeOf({ tag: 'Models' })

const TaskView = z.object({
  id: Task.describe('Id of the task, as in workflows and `POST /api/jobs`.'),
  title: string('Name for people: `Text to image`.'),
  description: string('What it does.'),
  needs_model: boolean('Whether a model does it. Nodes of a workflow with another task have no `model_id`.'),
  category: oneOf('What its results are.', ['text', 'image', 'video', 'audio']),
  aliases: array('Further names that are accepted for it.', z.string()),
  media_fields: array('Fields of the input that name an image, a video or audio.', z.string()),
  path: nullableString(
    'The OpenAI-compatible route that answers it; null if only jobs and its path below `/slug` do it.',
  ),
  sample: nullable(
    z.record(z.string(), z.unknown()),
    'A short input that shows whether a model works; null if it needs a file.',
  ),
  form: object('How a form for people can ask for its input.', {
    panel: oneOf('How to ask for it: turns of a chat, a text to continue, or a field for each input.', [
      'conversation',
      'text',
      'fields',
    ]),
    hidden_fields: array('Inputs to leave out, because others do the same.', z.string()),
    more_fields: array('Optional inputs that matter little and can be folded.', z.string()),
  }),
  models: array('Ids of the enabled models that do it and that the token may use.', z.string()),
  input_schema: anyObject('JSON Schema of the input: of a request without `model`, and of a workflow node.'),
  output_schema: anyObject('JSON Schema of the result.'),
})
const TaskList = namedObject('TaskList', 'The tasks with the schemas of their inputs and results.', {
  tasks: array('All tasks, also those that no model does.', TaskView),
})

export const taskRoutes = ({ registry }: Owners<'registry'>) => [
  route('GET /api/tasks', 'user:read', {
    summary: 'List tasks',
    description:
      'Returns every task with the JSON Schemas of its input and result, and the models that do it: for forms, workflow editors and clients that are made from schemas.',
    response: TaskList,
    handle: (_input, { caller }) => {
      const usable = [...registry.catalog().values()].filter(
        entry => entry.named?.kind !== 'alias' && entryAllowed({ caller }, entry),
      )
      return {
        tasks: taskRecords.map(record => {
          const { id, title, description, category, aliases, form, isMediaPath, path = null, sample = null } = record
          const { input, output } = schemasOfTask(id)
          return {
            id,
            title: title[0]!.toUpperCase() + title.slice(1),
            description,
            needs_model: needsModel(id),
            category,
            aliases: [...aliases],
            media_fields: Object.keys(input.properties ?? {}).filter(
              name => isMediaPath([name]) || isMediaPath([name, 0]),
            ),
            path,
            sample: sample && { ...sample },
            form: {
              panel: form.panel,
              hidden_fields: [...form.hidden],
              more_fields: optionalFirst.filter(name => name in (input.properties ?? {}) && !form.first.includes(name)),
            },
            models: usable.filter(model => model.tasks.includes(id)).map(model => model.id),
            input_schema: { ...input },
            output_schema: { ...output },
          }
        }),
      }
    },
  }),
]
