import { AudioLines, Clapperboard, Image, type LucideIcon, Type } from 'lucide-react'
import type { Schema } from '../api/schema.ts'
import { taskName } from '../text/tasks.ts'
import { type Kind, kindColours, kindOfTask, modelColour } from './colours.ts'

const icons: Readonly<Record<Kind, LucideIcon>> = {
  text: Type,
  image: Image,
  video: Clapperboard,
  audio: AudioLines,
}

/** The icon of a kind in its colour. */
export function KindIcon({ kind, className = 'size-4' }: { kind: Kind; className?: string }) {
  const Icon = icons[kind]
  return <Icon aria-hidden className={`shrink-0 ${kindColours[kind].text} ${className}`} />
}

/** The name of a task with the icon of what it makes. */
export function TaskLabel({ task }: { task: Schema<'Task'> }) {
  const kind = kindOfTask(task)
  return (
    <span className="inline-flex items-center gap-1.5 whitespace-nowrap">
      {kind && <KindIcon kind={kind} className="size-3.5" />}
      {taskName(task)}
    </span>
  )
}

/** The names of the tasks of a model. */
export const TaskLabels = ({ tasks }: { tasks: readonly Schema<'Task'>[] }) => (
  <span className="flex flex-wrap gap-x-3 max-md:justify-end">
    {tasks.map(task => (
      <TaskLabel key={task} task={task} />
    ))}
  </span>
)

/** A mark in the colour of a model. */
export const ModelMark = ({ id }: { id: string }) => (
  <span aria-hidden className={`inline-block size-2 shrink-0 rounded-xs ${modelColour(id)}`} />
)
