import { useQuery } from '@tanstack/react-query'
import { type CSSProperties, startTransition, useCallback, useEffect, useEffectEvent, useMemo, useState } from 'react'
import { api, at, dataOf, type Schema, tasksQuery, useSession } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Failed, Notice, Queried, useBeginning } from '../../components/page.tsx'
import { useSize } from '../../components/size-handle.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { editorText } from '../../text/editor.ts'
import type { Edit } from './document/edits.ts'
import type { TaskFacts } from './document/schema.ts'
import type { Part } from './document/selection.ts'
import { emptySource, openStored } from './document/source.ts'
import { dropDraft, newWorkflow, readDraft } from './drafts.ts'
import { type Adding, Drawer } from './drawer.tsx'
import { CardsContext, EditorContext, ProblemsContext } from './editor-context.ts'
import { GraphView } from './graph-view.tsx'
import { ListView } from './list-view.tsx'
import { propertiesId } from './panel/properties.tsx'
import { RunDialog } from './run/run-dialog.tsx'
import { useRun } from './run/run-panel.tsx'
import { RunTimeLine } from './run/run-time-line.tsx'
import { type Side, Sides } from './sides.tsx'
import { Toolbar } from './toolbar.tsx'
import { useArranging } from './use-arranging.ts'
import { useDocument, useValidation } from './use-document.ts'
import { useImport } from './use-import.ts'
import { useNested } from './use-nested.ts'
import { useStorage } from './use-storage.ts'

const byId = ({ tasks }: Schema<'TaskList'>) => new Map(tasks.map(task => [task.id as string, task]))

/** The editor of a workflow. */
export default function Editor({ id }: { id: string }) {
  useBeginning()
  const tasks = useQuery({ ...tasksQuery, select: byId })
  const stored = useQuery({
    queryKey: ['workflows', 'edited', id],
    queryFn: async () => {
      if (id === newWorkflow) return { version: 0, source: emptySource(editorText.newName), parsed: undefined }
      const { workflow } = await dataOf(api.GET('/api/workflows/{id}', at({ id })))
      return { version: workflow.version, ...(await openStored(workflow)) }
    },
    // What is edited is replaced only by the person who edits.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  return (
    <Queried query={stored} lines={8}>
      {({ version, source, parsed }) => (
        <Queried query={tasks} lines={8}>
          {known => (
            <Workbench
              key={version}
              id={id}
              version={version}
              source={source}
              read={parsed && { text: source, parsed }}
              tasks={known}
              reload={() => void stored.refetch()}
            />
          )}
        </Queried>
      )}
    </Queried>
  )
}

interface WorkbenchProps {
  id: string
  version: number
  /** What the server has, as YAML. */
  source: string
  /** The same as it was read; absent for a new workflow. */
  read: Parameters<typeof useDocument>[2]
  tasks: ReadonlyMap<string, TaskFacts>
  reload: () => void
}

/** One open workflow: the graph or list, and over it the panel with properties, YAML, problems and the run. */
function Workbench({ id, version, source, read, tasks, reload }: WorkbenchProps) {
  const { can, session } = useSession()
  const token = session.token.id
  const readOnly = !can('user:write')
  const [draft, setDraft] = useState(() => readDraft(token, id))
  const own = draft?.version === version ? draft : undefined
  const stale = draft && draft.version !== version && draft.text !== draft.saved ? draft : undefined
  const opened = useDocument(own?.text ?? source, own?.sound ?? source, read)
  const { text, parsed, workflow, setText, undo, redo, reset } = opened
  const { problems, failure: unchecked } = useValidation(text, parsed, !readOnly)
  const storage = useStorage(id, { version, source, saved: own?.saved ?? source }, opened)
  const [openedWithFaults] = useState(parsed.faults.length > 0)
  const [side, setSide] = useState<Side | undefined>(() =>
    new URLSearchParams(location.search).has('execution') ? 'run' : 'properties',
  )
  const [selected, setSelected] = useState<string>()
  const [adding, setAdding] = useState<Partial<Adding>>()
  const [width, setWidth] = useSize('editor-details', 384)
  const run = useRun(id, version)
  const [height, setHeight] = useSize('editor-time-line', 168)
  const hasTimeLine = run.execution !== undefined && run.timeLine

  const select = useCallback((node: string | undefined) => {
    // The graph shows the selection itself; the properties follow a part at a time.
    startTransition(() => {
      setSelected(node)
      if (node !== undefined) setSide(now => (now === 'yaml' || now === undefined ? now : 'properties'))
    })
  }, [])
  const reveal = useCallback((id: string | undefined) => {
    setSelected(id)
    setSide('properties')
    // After the properties are drawn.
    requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById(propertiesId)?.focus()))
  }, [])
  const change = opened.apply
  const apply = useCallback((edit: Edit, group?: string) => !readOnly && change(edit, group), [change, readOnly])
  const addNode = useCallback((wanted?: Adding) => setAdding(wanted ?? {}), [])
  const { value } = parsed
  const { ask } = run
  const { unsaved, version: storedVersion } = storage
  const runPart = useCallback(
    (part: Part | undefined) => {
      if (!value) return setSide('problems')
      ask({ ...(unsaved || storedVersion === 0 ? { value } : { id, version: storedVersion }), part })
    },
    [value, unsaved, storedVersion, id, ask],
  )
  const { execution, nodes: runs, approvals } = run
  const executionId = execution?.id
  const nested = useNested(workflow)
  const { expanded, unfold, arrange, arrangements } = useArranging({
    workflow,
    tasks,
    nested,
    ran: runs.size > 0,
    apply,
  })
  const facts = useMemo(
    () => ({
      workflow,
      value,
      tasks,
      nested,
      apply,
      readOnly,
      addNode,
      selected,
      select,
      reveal,
      execution: executionId,
      runs,
      approvals,
      runPart,
      expanded,
      unfold,
      arrange,
      arrangements,
    }),
    [
      workflow,
      value,
      tasks,
      nested,
      apply,
      readOnly,
      addNode,
      selected,
      select,
      reveal,
      executionId,
      runs,
      approvals,
      runPart,
      expanded,
      unfold,
      arrange,
      arrangements,
    ],
  )
  const cardFacts = useMemo(() => ({ tasks, runs, approvals }), [tasks, runs, approvals])
  useShortcuts({
    add: () => !readOnly && addNode(),
    save: () => !readOnly && storage.unsaved && parsed.value && storage.save(),
    undo,
    redo,
  })

  const importing = useImport(setText)
  const errors = problems.filter(({ severity }) => severity === 'error').length
  return (
    <EditorContext value={facts}>
      <CardsContext value={cardFacts}>
        <ProblemsContext value={problems}>
          <div data-fill className="flex min-h-0 flex-1 flex-col">
            <Toolbar
              id={id}
              text={text}
              document={opened}
              storage={storage}
              run={() => runPart(undefined)}
              canSave={parsed.value !== undefined}
              canRun={errors === 0 && workflow.nodes.length > 0}
            />
            <div className="border-line space-y-2 border-b px-4 py-2 empty:hidden">
              {readOnly && <Notice kind="info">{editorText.readOnly}</Notice>}
              {stale && (
                <Question
                  about={editorText.olderDraft(stale.version)}
                  answers={{
                    [editorText.useDraft]: () => {
                      setText(stale.text)
                      setDraft(undefined)
                    },
                    [editorText.dropDraft]: () => {
                      dropDraft(token, id)
                      setDraft(undefined)
                    },
                  }}
                />
              )}
              {openedWithFaults && parsed.faults[0] && (
                <Question
                  about={editorText.openedWithFaults(parsed.faults[0].line)}
                  answers={{ [editorText.problems(problems.length)]: () => setSide('problems') }}
                />
              )}
              {storage.failure && <Failed failure={storage.failure} />}
              {storage.conflict && (
                <Question
                  about={editorText.conflict}
                  answers={{
                    [editorText.loadTheirs]: () => {
                      storage.forget()
                      reset(source)
                      storage.dismiss()
                      reload()
                    },
                    [editorText.saveAnyway]: storage.saveAnyway,
                  }}
                />
              )}
            </div>
            <div
              style={
                {
                  '--details': `${side === undefined ? 0 : width}px`,
                  '--run': hasTimeLine ? `${height}px` : '0px',
                  '--drawer': adding ? '20.75rem' : '0rem',
                } as CSSProperties
              }
              className="relative flex min-h-0 flex-1 flex-col"
              {...(readOnly ? {} : importing)}
            >
              {/* Before the graph, so that Tab leads from the drawer to it. */}
              {adding && <Drawer adding={adding} close={() => setAdding(undefined)} />}
              <Views />
              {hasTimeLine && <RunTimeLine run={run} height={height} setHeight={setHeight} />}
              <Sides
                document={opened}
                unchecked={unchecked}
                run={run}
                side={side}
                choose={setSide}
                width={width}
                setWidth={setWidth}
              />
            </div>
          </div>
          {run.runnable && (
            <RunDialog
              runnable={run.runnable}
              close={() => run.ask(undefined)}
              started={execution => {
                run.follow(execution)
                setSide('run')
              }}
            />
          )}
        </ProblemsContext>
      </CardsContext>
    </EditorContext>
  )
}

/** The workflow as a graph or as a list. */
function Views() {
  const [view, setView] = useState<'graph' | 'list'>('graph')
  // A large graph is drawn after the rest, a part at a time, so that neither holds the page for long.
  const [isReady, setReady] = useState(false)
  useEffect(() => startTransition(() => setReady(true)), [])
  const names = { graph: editorText.graph, list: editorText.list }
  return (
    <Tabs
      label={editorText.views}
      names={names}
      current={view}
      choose={setView}
      listClass="bg-surface border-line z-10 px-1 max-lg:border-b lg:absolute lg:top-3 lg:left-[calc(var(--drawer)+0.75rem)] lg:rounded-lg lg:border lg:shadow-md"
      panelClass={`flex min-h-0 flex-1 flex-col ${view === 'list' ? 'p-4 lg:overflow-y-auto lg:pt-16 lg:pr-[calc(var(--details)+2rem)]' : ''}`}
    >
      {isReady && (view === 'graph' ? <GraphView /> : <ListView />)}
    </Tabs>
  )
}

/** Asks what to do about something; each answer is a button. */
const Question = ({ about, answers }: { about: string; answers: Readonly<Record<string, () => void>> }) => (
  <Notice kind="warning">
    {about}
    {Object.entries(answers).map(([label, act]) => (
      <Button key={label} small onClick={act} label={label} />
    ))}
  </Notice>
)

/** The keys that add a node, save, undo and redo. */
function useShortcuts({ add, save, undo, redo }: Record<'add' | 'save' | 'undo' | 'redo', () => unknown>): void {
  const press = useEffectEvent((event: KeyboardEvent) => {
    if (event.defaultPrevented) return
    const key = event.key.toLowerCase()
    // In a field the browser undoes letters; in the YAML the editor has its own keys.
    const typing = (event.target as HTMLElement).closest?.('input, textarea, select, dialog, [contenteditable]')
    if (!(event.ctrlKey || event.metaKey)) {
      if (key !== '/' || typing || event.altKey) return
      event.preventDefault()
      return void add()
    }
    if (key !== 's' && (typing || (key !== 'z' && key !== 'y'))) return
    event.preventDefault()
    if (key === 's') save()
    else if (key === 'y' || event.shiftKey) redo()
    else undo()
  })
  useEffect(() => {
    const listen = (event: KeyboardEvent) => press(event)
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
}
