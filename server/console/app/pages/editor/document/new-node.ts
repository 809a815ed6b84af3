import { editorText } from '../../../text/editor.ts'
import { taskName } from '../../../text/tasks.ts'
import { addNode, type Edit, moveNode, together } from './edits.ts'
import { placeForNode } from './graph.ts'
import { firstInputs, type TaskFacts } from './schema.ts'
import { freeId, idForTask } from './source.ts'
import type { WorkflowNode } from './workflow-document.ts'

/** Messages with which a new node can be run at once. */
const firstMessages = [{ role: 'user', content: editorText.firstMessage }]

/** Where a card stands, by the id of its node. */
export type SeenPlaces = readonly { id: string; at: { x: number; y: number } }[]

/**
 * Adds a node for a task. `drop` says where a person put it: then the others stay where they are `seen`. Without it the
 * node stands beside those that people have placed, or is arranged with all others.
 */
export function newNode(
  task: TaskFacts,
  nodes: readonly WorkflowNode[],
  drop?: { at: { x: number; y: number }; seen: SeenPlaces },
): { id: string; edit: Edit } {
  const id = freeId(idForTask(taskName(task.id)), new Set(nodes.map(node => node.id)))
  const place = drop?.at ?? placeForNode(nodes)
  const [model] = task.models
  const node = {
    ...(model === undefined ? {} : { model_id: model }),
    task: task.id,
    inputs: {
      ...firstInputs(task.input_schema),
      ...(task.form.panel === 'conversation' ? { messages: firstMessages } : {}),
    },
  }
  const unplaced = new Set(nodes.filter(({ position }) => !position).map(one => one.id))
  const kept = (drop?.seen ?? []).filter(one => unplaced.has(one.id)).map(({ id, at }) => moveNode(id, at.x, at.y))
  return { id, edit: together(...kept, addNode(id, node), ...(place ? [moveNode(id, place.x, place.y)] : [])) }
}
