import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useCallback, useEffect, useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { api, at, dataOf, type Schema, tasksQuery, useSession } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Failed, Loading, Notice, Queried, useBeginning } from '../../components/page.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { editorText } from '../../text/editor.ts'
import type { Edit } from './document/edits.ts'
import type { TaskFacts } from './document/schema.ts'
import { emptySource, sourceOf } from './document/source.ts'
import { dropDraft, newWorkflow, readDraft } from './drafts.ts'
import { EditorContext, ProblemsContext, useEditor, useProblems } from './editor-context.ts'
import { GraphView } from './graph-view.tsx'
import { ListView } from './list-view.tsx'
import { Palette } from './palette.tsx'
import { NodePanel } from './panel/node-panel.tsx'
import { propertiesId } from './panel/properties.tsx'
import { WorkflowPanel } from './panel/workflow-panel.tsx'
import { SeverityBadge } from './run/node-run.tsx'
import { RunDialog, type Runnable } from './run/run-dialog.tsx'
import { RunPanel, useRun } from './run/run-panel.tsx'
import { Toolbar } from './toolbar.tsx'
import { useDocument, useValidation } from './use-document.ts'
import { useStorage } from './use-storage.ts'

const byId = ({ tasks }: Schema<'TaskList'>) => new Map(tasks.map(task => [task.id as string, task]))

/** The editor of a workflow. */
export default function Editor({ id }: { id: string }) {
  useBeginning()
  const tasks = useQuery({ ...tasksQuery, select: byId })
  const stored = useQuery({
    queryKey: ['workflows', 'edited', id],
    queryFn: async () => {
      if (id === newWorkflow) return { version: 0, source: emptySource(editorText.newName) }
      const { workflow } = await dataOf(api.GET('/api/workflows/{id}', at({ id })))
      return { version: workflow.version, source: sourceOf(workflow) }
    },
    // What is edited is replaced only by the person who edits.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  return (
    <Queried query={stored} lines={8}>
      {({ version, source }) => (
        <Queried query={tasks} lines={8}>
          {known => (
            <Workbench
              key={version}
              id={id}
              version={version}
              source={source}
              tasks={known}
              reload={() => void stored.refetch()}
            />
          )}
        </Queried>
      )}
    </Queried>
  )
}

/** CodeMirror is loaded when the YAML is opened. */
const YamlView = lazy(() => import('./yaml-view.tsx'))

type Side = 'properties' | 'yaml' | 'problems' | 'run'

/** One open workflow: the graph or list, and beside it properties, YAML, problems and the run. */
function Workbench({
  id,
  version,
  source,
  tasks,
  reload,
}: {
  id: string
  version: number
  /** What the server has, as YAML. */
  source: string
  tasks: ReadonlyMap<string, TaskFacts>
  reload: () => void
}) {
  const { can, session } = useSession()
  const token = session.token.id
  const readOnly = !can('user:write')
  const [draft, setDraft] = useState(() => readDraft(token, id))
  const own = draft?.version === version ? draft : undefined
  const stale = draft && draft.version !== version && draft.text !== draft.saved ? draft : undefined
  const opened = useDocument(own?.text ?? source)
  const { text, parsed, workflow, setText, undo, redo, reset } = opened
  const { problems, failure: unchecked } = useValidation(text, parsed, !readOnly)
  const storage = useStorage(id, { version, source, saved: own?.saved ?? source }, text, parsed.value)
  const [view, setView] = useState<'graph' | 'list'>('graph')
  const [side, setSide] = useState<Side>('properties')
  const [selected, setSelected] = useState<string>()
  const [adding, setAdding] = useState(false)
  // A link with `?run` opens the dialog at once, for what is stored.
  const [running, setRunning] = useState<Runnable | undefined>(() =>
    !readOnly && version > 0 && new URLSearchParams(location.search).has('run') ? { id, version } : undefined,
  )
  const [, go] = useLocation()
  // A reload opens the workflow, and not the dialog again.
  useEffect(() => {
    if (location.search !== '') go(`/workflows/${id}`, { replace: true })
  }, [go, id])
  const [runId, setRunId] = useState<string>()
  const [line, setLine] = useState<{ number: number }>()
  const run = useRun(runId)

  const select = useCallback((node: string | undefined) => {
    setSelected(node)
    if (node !== undefined) setSide(now => (now === 'yaml' ? now : 'properties'))
  }, [])
  const reveal = useCallback((id: string | undefined) => {
    setSelected(id)
    setSide('properties')
    // After the properties are drawn.
    requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById(propertiesId)?.focus()))
  }, [])
  const change = opened.apply
  const apply = useCallback((edit: Edit, group?: string) => !readOnly && change(edit, group), [change, readOnly])
  const addNode = useCallback(() => setAdding(true), [])
  const node = workflow.nodes.find(one => one.id === selected)
  const facts = useMemo(
    () => ({ workflow, tasks, apply, readOnly, addNode, selected, select, reveal, runs: run.nodes }),
    [workflow, tasks, apply, readOnly, addNode, selected, select, reveal, run.nodes],
  )

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.defaultPrevented) return
      const key = event.key.toLowerCase()
      // In a field the browser undoes letters; in the YAML the editor has its own keys.
      const typing = (event.target as HTMLElement).closest?.('input, textarea, [contenteditable]')
      if (key === 's') {
        event.preventDefault()
        if (!readOnly && storage.unsaved && parsed.value) storage.save()
      } else if (!typing && (key === 'z' || key === 'y')) {
        event.preventDefault()
        if (key === 'y' || event.shiftKey) redo()
        else undo()
      }
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })

  const startRun = () => {
    if (!parsed.value) return setSide('problems')
    setRunning(storage.unsaved || storage.version === 0 ? { value: parsed.value } : { id, version: storage.version })
  }
  const errors = problems.filter(({ severity }) => severity === 'error').length
  const sides: Record<Side, string> = {
    properties: editorText.properties,
    yaml: editorText.yaml,
    problems: editorText.problems(problems.length),
    run: editorText.runs,
  }
  return (
    <EditorContext value={facts}>
      <ProblemsContext value={problems}>
        <Toolbar
          id={id}
          text={text}
          document={opened}
          storage={storage}
          run={startRun}
          canSave={parsed.value !== undefined}
          canRun={errors === 0 && workflow.nodes.length > 0}
        />
        <div className="mb-3 space-y-2">
          {readOnly && <Notice kind="info">{editorText.readOnly}</Notice>}
          {stale && (
            <Notice kind="warning">
              {editorText.olderDraft(stale.version)}
              <Button
                small
                onClick={() => {
                  setText(stale.text)
                  setDraft(undefined)
                }}
                label={editorText.useDraft}
              />
              <Button
                small
                onClick={() => {
                  dropDraft(token, id)
                  setDraft(undefined)
                }}
                label={editorText.dropDraft}
              />
            </Notice>
          )}
          {storage.failure && <Failed failure={storage.failure} />}
          {storage.conflict && (
            <Notice kind="warning">
              {editorText.conflict}
              <Button
                small
                onClick={() => {
                  dropDraft(token, id)
                  reset(source)
                  storage.dismiss()
                  reload()
                }}
                label={editorText.loadTheirs}
              />
              <Button small onClick={storage.saveAnyway} label={editorText.saveAnyway} />
            </Notice>
          )}
        </div>
        <div className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_24rem]">
          <div className="min-w-0">
            <Tabs
              label={editorText.views}
              names={{ graph: editorText.graph, list: editorText.list }}
              current={view}
              choose={setView}
            >
              {view === 'graph' ? <GraphView /> : <ListView />}
            </Tabs>
          </div>
          <div className="min-w-0">
            <Tabs label={editorText.sides} names={sides} current={side} choose={setSide}>
              <div className={side === 'yaml' ? '' : 'lg:max-h-[calc(100dvh-13rem)] lg:overflow-y-auto lg:pr-1'}>
                {side === 'properties' && (node ? <NodePanel key={node.id} node={node} /> : <WorkflowPanel />)}
                {side === 'problems' && (
                  <ProblemList
                    failure={unchecked}
                    show={number => {
                      setLine({ number })
                      setSide('yaml')
                    }}
                  />
                )}
                {side === 'run' && (
                  <RunPanel execution={run.execution} failure={run.failure} hide={() => setRunId(undefined)} />
                )}
                {side === 'yaml' && (
                  <Suspense fallback={<Loading lines={12} />}>
                    <YamlView
                      text={text}
                      change={next => setText(next, 'yaml')}
                      problems={problems}
                      line={line}
                      readOnly={readOnly}
                      undo={undo}
                      redo={redo}
                    />
                  </Suspense>
                )}
              </div>
            </Tabs>
          </div>
        </div>
        {adding && <Palette close={() => setAdding(false)} />}
        {running && (
          <RunDialog
            runnable={running}
            close={() => setRunning(undefined)}
            started={execution => {
              setRunId(execution)
              setSide('run')
            }}
          />
        )}
      </ProblemsContext>
    </EditorContext>
  )
}

/** Most problems that are listed at once. */
const maxShown = 100

/** All problems; each leads to its node and its line. */
function ProblemList({ failure, show }: { failure: string | undefined; show: (line: number) => void }) {
  const { reveal } = useEditor()
  const problems = useProblems()
  if (failure) return <Notice kind="warning">{failure}</Notice>
  if (problems.length === 0) return <p>{editorText.noProblems}</p>
  return (
    <ul className="space-y-2">
      {problems.slice(0, maxShown).map(({ message, severity, node, line }, at) => (
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
    </ul>
  )
}
