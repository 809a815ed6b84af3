import { Button } from '../../components/button.tsx'
import { Empty } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { editorText } from '../../text/editor.ts'
import { type ExecutionNode } from '../executions/use-execution.ts'
import { countProblems, type ProblemCounts } from './document/diagnostics.ts'
import { listName } from './document/items.ts'
import { takenValuesOf, upstreamOf } from './document/references.ts'
import type { WorkflowNode } from './document/workflow-document.ts'
import { useEditor, useProblems } from './editor-context.ts'
import { NodeBadge } from './run/node-run.tsx'

interface Row extends ProblemCounts {
  node: WorkflowNode
  needsModel: boolean
  title: string
  from: string
  run: ExecutionNode | undefined
  open: () => void
}

/** The workflow as a list in the order of execution: all that the graph offers, without a pointer or eyesight. */
export function ListView() {
  const { workflow, tasks, runs, reveal } = useEditor()
  const problems = useProblems()
  const links = takenValuesOf(workflow)
  const ranks = new Map(workflow.nodes.map(({ id }) => [id, upstreamOf(workflow, id).size]))
  const rows = [...workflow.nodes]
    .sort((a, b) => ranks.get(a.id)! - ranks.get(b.id)!)
    .map((node): Row => {
      const before = [
        ...links.filter(({ to }) => to === node.id).map(({ from }) => from ?? editorText.parameters),
        ...workflow.edges.filter(({ to }) => to === node.id).map(({ from }) => from),
      ]
      return {
        node,
        needsModel: tasks.get(node.task)?.needs_model !== false,
        title: tasks.get(node.task)?.title ?? (node.task || editorText.unknownTask),
        from: [...new Set(before)].join(', '),
        ...countProblems(problems, node.id),
        run: runs.get(node.id),
        open: () => reveal(node.id),
      }
    })
  if (rows.length === 0) return <EmptyGraph />
  return <Table label={editorText.nodes} columns={columns} rows={rows} rowKey={({ node }) => node.id} />
}

const columns: readonly Column<Row>[] = [
  {
    name: editorText.node,
    show: ({ node, open }) => (
      <button type="button" className="text-accent min-h-6 font-medium underline" onClick={open}>
        {node.name ?? node.id}
      </button>
    ),
  },
  {
    name: editorText.task,
    show: ({ node, title }) => (
      <>
        {title}
        {node.for_each !== undefined && (
          <span className="text-muted block text-xs">{editorText.forEachOf(listName(node.for_each))}</span>
        )}
        {node.pin !== undefined && <span className="text-muted block text-xs">{editorText.pin}</span>}
        {node.note !== undefined && <span className="text-muted line-clamp-2 block text-xs">{node.note}</span>}
      </>
    ),
  },
  { name: editorText.model, show: ({ node, needsModel }) => node.model ?? (needsModel ? editorText.noModel : '–') },
  { name: editorText.dependsOn, show: ({ from }) => from || '–' },
  {
    name: editorText.problems(0),
    show: ({ run, errors, warnings }) =>
      run || errors + warnings > 0 ? <NodeBadge run={run} errors={errors} warnings={warnings} /> : '–',
  },
]

/** Says that there are no nodes yet. */
export function EmptyGraph() {
  const { readOnly, addNode } = useEditor()
  return (
    <Empty title={editorText.emptyGraph}>
      <p>{editorText.emptyGraphNext}</p>
      {!readOnly && <Button onClick={() => addNode()} label={editorText.addNode} />}
    </Empty>
  )
}
