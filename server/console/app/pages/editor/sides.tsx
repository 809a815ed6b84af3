import { PanelRightClose, PanelRightOpen } from 'lucide-react'
import { useState } from 'react'
import { Button, IconButton } from '../../components/button.tsx'
import { loaded } from '../../components/loaded.tsx'
import { Loading, Notice } from '../../components/page.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { editorText } from '../../text/editor.ts'
import { shellText } from '../../text/shell.ts'
import { useEditor, useProblems } from './editor-context.ts'
import { NodePanel } from './panel/node-panel.tsx'
import { WorkflowPanel } from './panel/workflow-panel.tsx'
import { SeverityBadge } from './run/node-run.tsx'
import { RunPanel, type useRun } from './run/run-panel.tsx'
import { SizedPanel } from './sized-panel.tsx'
import type { useDocument } from './use-document.ts'

/** CodeMirror is loaded when the YAML is opened. */
const YamlView = loaded(() => import('./yaml-view.tsx'), <Loading lines={12} />)

export type Side = 'properties' | 'yaml' | 'problems' | 'run'

interface SidesProps {
  document: ReturnType<typeof useDocument>
  /** Why the workflow could not be checked. */
  unchecked: string | undefined
  run: ReturnType<typeof useRun>
  /** Undefined: the panel is closed, and the graph has its space. */
  side: Side | undefined
  choose: (side: Side | undefined) => void
  /** Pixels. */
  width: number
  setWidth: (width: number) => void
}

/** Pixels of the graph that stay free beside the panel. */
const leastGraph = 360

/**
 * The panel over the right of the graph: properties, YAML, problems or the run. People change its width, and close it.
 */
export function Sides({
  document: { text, workflow, setText, undo, redo },
  unchecked,
  run,
  side,
  choose,
  width,
  setWidth,
}: SidesProps) {
  const { readOnly, selected } = useEditor()
  const problems = useProblems()
  const [line, setLine] = useState<{ number: number }>()
  const node = workflow.nodes.find(one => one.id === selected)
  const showLine = (number: number) => {
    setLine({ number })
    choose('yaml')
  }
  const names: Record<Side, string> = {
    properties: editorText.properties,
    yaml: editorText.yaml,
    problems: editorText.problems(problems.length),
    run: editorText.runs,
  }
  if (side === undefined)
    return (
      <div className="max-lg:p-4 lg:absolute lg:top-3 lg:right-3">
        <Button icon={PanelRightOpen} onClick={() => choose('properties')} label={editorText.openSides} />
      </div>
    )
  return (
    <SizedPanel
      label={editorText.sides}
      covers="right"
      handleLabel={editorText.sidesWidth}
      size={width}
      least={300}
      most={innerWidth - leastGraph}
      setSize={setWidth}
    >
      <div className="relative flex min-h-0 flex-1 flex-col">
        <IconButton
          icon={PanelRightClose}
          label={editorText.closeSides}
          onClick={() => choose(undefined)}
          className="absolute top-1 right-1"
        />
        <Tabs
          label={editorText.sides}
          names={names}
          current={side}
          choose={choose}
          listClass="shrink-0 pr-10 pl-2"
          panelClass={`min-h-0 flex-1 p-4 ${side === 'yaml' ? '' : 'lg:overflow-y-auto'}`}
        >
          {side === 'properties' && (node ? <NodePanel key={node.id} node={node} /> : <WorkflowPanel />)}
          {side === 'problems' && <ProblemList failure={unchecked} show={showLine} />}
          {side === 'run' && <RunPanel run={run} />}
          {side === 'yaml' && (
            <YamlView
              text={text}
              change={next => setText(next, 'yaml')}
              problems={problems}
              line={line}
              readOnly={readOnly}
              undo={undo}
              redo={redo}
            />
          )}
        </Tabs>
      </div>
    </SizedPanel>
  )
}

/** Problems that are listed at once. */
const problemsAtOnce = 100

/** All problems; each leads to its node and its line. */
function ProblemList({ failure, show }: { failure: string | undefined; show: (line: number) => void }) {
  const { reveal } = useEditor()
  const problems = useProblems()
  const [most, setMost] = useState(problemsAtOnce)
  if (failure) return <Notice kind="warning">{failure}</Notice>
  if (problems.length === 0) return <p>{editorText.noProblems}</p>
  return (
    <ul className="space-y-2">
      {problems.slice(0, most).map(({ message, severity, node, line }, at) => (
        // The same problem can be there twice.
        <li key={at} className="border-line space-y-1 border-b pb-2">
          <p className="break-words">
            <SeverityBadge severity={severity} /> {message}
          </p>
          <p className="flex gap-3 text-xs">
            {node !== undefined && (
              <button type="button" className="text-accent min-h-6 underline" onClick={() => reveal(node)}>
                {editorText.node} {node}
              </button>
            )}
            <button type="button" className="text-accent min-h-6 underline" onClick={() => show(line)}>
              {editorText.line(line)}
            </button>
          </p>
        </li>
      ))}
      {problems.length > most && (
        <li>
          <Button onClick={() => setMost(most + problemsAtOnce)} label={shellText.more} />
        </li>
      )}
    </ul>
  )
}
