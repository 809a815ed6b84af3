import { everyItem } from '../../../../../../core/workflows/references.ts'
import type { JsonSchema } from '../../../api/schema.ts'
import type { NestedNode, NestedWorkflows } from './nested.ts'
import { outputSteps, outputText } from './references.ts'
import { fieldOf, mainOutput, type OutputField, outputFields, schemaAt, type TaskFacts } from './schema.ts'
import type { Path, WorkflowNode } from './workflow-document.ts'

/** What is known of the results of nodes: by their tasks, and by the workflows that they run. */
export interface KnownResults {
  tasks: ReadonlyMap<string, Pick<TaskFacts, 'output_schema'>>
  nested: NestedWorkflows
}

/** What is in the result of a node. */
export interface NodeResult {
  /** What is in the result; empty if it is not known. */
  tree: OutputField[]
  /** What people mostly want of it. */
  main: OutputField | undefined
}
type ResultNode = Pick<WorkflowNode, 'id' | 'task' | 'for_each'>

/** By the schema of a task or the nodes of a workflow, of which hundreds of nodes may have the same. */
const results = new WeakMap<object, Map<string, NodeResult>>()

/** The result of a node. With `everyItems` lists show `[*]` too, which reads every item. */
export function resultOf(node: ResultNode, { tasks, nested }: KnownResults, everyItems = false): NodeResult {
  const inner = nested.get(node.id)
  const schema = tasks.get(node.task)?.output_schema
  const source = inner ?? schema
  if (!source) return { tree: [], main: undefined }
  const isList = node.for_each !== undefined
  let known = results.get(source)
  if (!known) results.set(source, (known = new Map()))
  const key = `${isList} ${everyItems}`
  let result = known.get(key)
  if (!result) {
    const whole = inner
      ? { tree: nestedTree(inner, tasks, isList, everyItems), main: nestedMain(inner, tasks, isList) }
      : { tree: outputFields(schema!, { isList, everyItems }), main: mainOutput(outputFields(schema!, { isList })) }
    known.set(key, (result = whole))
  }
  return result
}

type Inner = readonly NestedNode[]

/** The result of a node that runs a workflow: what the nodes of that workflow keep, by their ids. */
function nestedTree(inner: Inner, tasks: KnownResults['tasks'], isList: boolean, everyItems: boolean): OutputField[] {
  const within = (path: Path) => inner.map(node => nestedNode(node, tasks, path, everyItems))
  if (!isList) return within([])
  return (everyItems ? [everyItem, 0] : [everyItem]).map(step => ({
    path: [step],
    label: outputText([step]),
    kind: step === everyItem ? 'list' : 'object',
    description: '',
    children: within([step]),
  }))
}

/** The last node is mostly the one that a workflow is about. */
const nestedMain = (inner: Inner, tasks: KnownResults['tasks'], isList: boolean): OutputField | undefined =>
  inner
    .toReversed()
    .map(node => mainOutput([nestedNode(node, tasks, isList ? [everyItem] : [], false)]))
    .find(main => main !== undefined)

/** What a node of the workflow keeps: its `outputs`, or the whole result. */
function nestedNode(node: NestedNode, tasks: KnownResults['tasks'], above: Path, everyItems: boolean): OutputField {
  const { schema, root } = resultSchema(node, tasks)
  const path = [...above, node.id]
  const kept = node.outputs.map(outputSteps).filter(steps => steps !== undefined)
  const field = (steps: Path, label: string) =>
    fieldOf([...path, 'result', ...steps], label, schemaAt(schema, root, steps) ?? {}, root, everyItems)
  return {
    path,
    label: node.id,
    kind: path.includes(everyItem) ? 'list' : 'object',
    description: node.name ?? '',
    children:
      kept.length === 0 ? [field([], 'result')] : kept.map(steps => field(steps, outputText(['result', ...steps]))),
  }
}

/** The schema of what the task of a node makes, in a list if it runs for items, and the one that has its definitions. */
export function resultSchema(
  { task, for_each }: Pick<WorkflowNode, 'task' | 'for_each'>,
  tasks: KnownResults['tasks'],
) {
  const root: JsonSchema = tasks.get(task)?.output_schema ?? {}
  return { schema: for_each === undefined ? root : { type: 'array', items: root }, root }
}
