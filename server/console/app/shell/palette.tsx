import { Compass, FileText, type LucideIcon, Network, Plus, Search, Zap } from 'lucide-react'
import { useLayoutEffect, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { api, at, dataOf, type Schema, useAnswer, useSession } from '../api/client.ts'
import { modelHref, pageOfId } from '../components/addresses.ts'
import { useAction } from '../components/announcements.tsx'
import { kindOfTask } from '../components/colours.ts'
import { KindIcon, ModelMark } from '../components/marks.tsx'
import type { Choice } from '../components/matching.ts'
import { modelOption } from '../components/options.tsx'
import { SearchList } from '../components/search-list.tsx'
import { pages } from '../pages.ts'
import { jobsText } from '../text/jobs.ts'
import { modelText } from '../text/models.ts'
import { shellText } from '../text/shell.ts'
import { jobTitle } from '../text/tasks.ts'
import { chooseTheme, themes } from './theme.ts'

const text = shellText.palette

/** A choice with what happens when it is chosen: another page of the console, or an action. */
type Command = Choice & ({ to: string } | { act: () => void })

/** How many workflows and jobs are read; `searches` finds those beyond. */
const limit = { workflows: 100, jobs: 50 }

const icon = (Icon: LucideIcon) => <Icon aria-hidden className="text-muted size-4 shrink-0" />

/** Finds pages, models, workflows, jobs and actions by words. An id of a job or an execution opens it. */
export default function Palette({ close, showShortcuts }: { close: () => void; showShortcuts: () => void }) {
  const [, go] = useLocation()
  const [query, setQuery] = useState('')
  const dialog = useRef<HTMLDialogElement>(null)
  const commands = useCommands(query, showShortcuts)
  useLayoutEffect(() => {
    const shown = dialog.current!
    shown.showModal()
    return () => shown.close()
  }, [])
  const choose = (id: string) => {
    const command = commands.find(one => one.id === id)!
    close()
    if ('to' in command) go(command.to)
    else command.act()
  }
  return (
    <dialog
      ref={dialog}
      aria-label={text.title}
      onCancel={event => {
        event.preventDefault()
        close()
      }}
      onClick={event => event.target === event.currentTarget && close()}
      className="bg-surface text-text border-line mx-auto mt-[12dvh] w-[calc(100%-2rem)] max-w-xl overflow-hidden rounded-lg border p-0 shadow-lg"
    >
      <SearchList label={text.title} choices={commands} choose={choose} typed={setQuery} className="max-h-[60dvh]" />
    </dialog>
  )
}

/** All that can be chosen, in the order of the groups. */
function useCommands(query: string, showShortcuts: () => void): Command[] {
  const { can, ownerCan, signOut } = useSession()
  const models = useAnswer(['palette', 'models'], () => api.GET('/api/model-status')).data?.models
  const workflows = useAnswer(['palette', 'workflows'], () =>
    api.GET('/api/workflows', { params: { query: { limit: limit.workflows } } }),
  ).data?.workflows
  const jobs = useAnswer(['palette', 'jobs'], () => api.GET('/api/jobs', { params: { query: { limit: limit.jobs } } }))
    .data?.jobs
  const { mutate: load } = useAction(
    ({ id, action }: { id: string; action: 'load' | 'unload' }) =>
      dataOf(api.POST(`/api/models/{id}/${action}`, at({ id }, { wait: 1 }))),
    (_, { id, action }) => (action === 'load' ? modelText.loading(id) : modelText.unloading(id)),
    ['overview'],
    ['models'],
  )
  const mayLoad = ownerCan('admin:write')
  const mayRun = can('user:write')
  return useMemo(() => {
    const actions: Command[] = [
      ...(mayRun ? [{ id: 'new-workflow', name: text.newWorkflow, mark: icon(Plus), to: '/workflows/new' }] : []),
      ...(mayLoad ? (models ?? []).flatMap(model => loadCommand(model, load)) : []),
      ...(mayRun ? (models ?? []).map(tryCommand) : []),
      ...themes.map(one => ({
        id: `theme ${one}`,
        name: text.theme(shellText.themes[one]),
        mark: icon(Zap),
        act: () => chooseTheme(one),
      })),
      { id: 'shortcuts', name: shellText.shortcuts, mark: icon(Zap), act: showShortcuts },
      { id: 'reference', name: shellText.documentation, mark: icon(FileText), act: () => location.assign('/docs') },
      { id: 'guides', name: shellText.guides, mark: icon(FileText), act: () => location.assign('/docs/guides') },
      { id: 'sign-out', name: shellText.signOut, mark: icon(Zap), act: () => void signOut() },
    ]
    return [
      ...byId(query),
      ...pages
        .filter(page => can(page.scope))
        .map(({ path, name, icon: Icon }) => ({
          id: path,
          name,
          group: text.groups.pages,
          mark: icon(Icon),
          to: path,
        })),
      ...(models ?? []).map(({ model_id: id, status }) => ({
        ...modelOption(id, status),
        id: `model ${id}`,
        group: text.groups.models,
        to: modelHref(id),
      })),
      ...(workflows ?? []).map(({ id, name, description }) => ({
        id,
        name,
        note: description ?? undefined,
        group: text.groups.workflows,
        mark: icon(Network),
        to: `/workflows/${id}`,
      })),
      ...actions.map(one => ({ ...one, group: text.groups.actions })),
      ...(jobs ?? []).map(jobCommand),
      ...searches(query),
    ]
  }, [query, models, workflows, jobs, can, mayLoad, mayRun, load, showShortcuts, signOut])
}

/** What is opened by its id, without being in a list. */
function byId(query: string): Command[] {
  const id = query.trim()
  const to = pageOfId(id)
  return to === undefined ? [] : [{ id: `id ${id}`, name: text.open(id), mark: icon(Compass), to }]
}

/** The searches of the pages, for workflows and jobs that are older than those that are listed here. */
const searches = (query: string): Command[] =>
  query.trim() === ''
    ? []
    : (['workflows', 'jobs'] as const).map(page => ({
        id: `search ${page}`,
        name: text.search(query.trim(), text.groups[page].toLowerCase()),
        group: text.groups.search,
        mark: icon(Search),
        to: `/${page}?${new URLSearchParams({ q: query.trim() })}`,
      }))

type Load = (given: { id: string; action: 'load' | 'unload' }) => void

function loadCommand({ model_id: id, status }: Schema<'ModelStatus'>, load: Load): Command[] {
  if (status === 'disabled') return []
  const action = status === 'warm' || status === 'loading' ? 'unload' : 'load'
  return [
    {
      id: `load ${id}`,
      name: `${modelText[action]} ${id}`,
      mark: <ModelMark id={id} />,
      act: () => load({ id, action }),
    },
  ]
}

const tryCommand = ({ model_id: id, tasks }: Schema<'ModelStatus'>): Command => ({
  id: `try ${id}`,
  name: text.tryModel(id),
  mark: <ModelMark id={id} />,
  to: `/playground?${new URLSearchParams({ task: tasks[0] ?? '', model: id })}`,
})

function jobCommand(job: Schema<'ListedJob'>): Command {
  const { id, task, model_id: model, status } = job
  const kind = kindOfTask(task)
  return {
    id,
    name: jobTitle(job),
    note: [jobsText.statuses[status] ?? status, model, id].filter(Boolean).join(' · '),
    group: text.groups.jobs,
    mark: kind ? <KindIcon kind={kind} /> : icon(Zap),
    to: `/jobs/${id}`,
  }
}
