import {
  Activity,
  Bot,
  Boxes,
  Building2,
  ChartColumn,
  CircleCheck,
  Images,
  ListChecks,
  type LucideIcon,
  Network,
  Play,
  Settings,
} from 'lucide-react'
import type { ComponentType } from 'react'
import type { Scope } from './api/client.ts'
import { type Loaded, loaded } from './components/loaded.tsx'
import { shellText } from './text/shell.ts'

/** One page of the console. */
export interface Page {
  /** Below `/console`; `/` is the first page. Pages with parts, such as one job, have their own routes below it. */
  path: string
  name: string
  icon: LucideIcon
  /** The key that opens the page after `g`. */
  key: string
  /** Without this scope the page is not offered. */
  scope: Scope
  /** The page, whose chunk is loaded when it is opened. */
  Content: Loaded
}

const page = (
  name: keyof typeof shellText.pages,
  icon: LucideIcon,
  key: string,
  scope: Scope,
  load: () => Promise<{ default: ComponentType }>,
  path = `/${name}`,
): Page => ({ path, name: shellText.pages[name], icon, key, scope, Content: loaded(load) })

/** All pages in the order of the navigation. */
export const pages: readonly Page[] = [
  page('playground', Play, 'p', 'user:write', () => import('./pages/playground/playground.tsx')),
  page('models', Bot, 'm', 'user:read', () => import('./pages/models/models.tsx')),
  page('jobs', ListChecks, 'j', 'user:read', () => import('./pages/jobs/jobs.tsx')),
  page('workflows', Network, 'w', 'user:read', () => import('./pages/workflows/workflows.tsx')),
  page('executions', Boxes, 'e', 'user:read', () => import('./pages/executions/executions.tsx')),
  page('approvals', CircleCheck, 'a', 'user:read', () => import('./pages/approvals/approvals.tsx')),
  page('library', Images, 'l', 'user:read', () => import('./pages/library/library.tsx')),
  page('usage', ChartColumn, 'u', 'user:read', () => import('./pages/usage/usage.tsx')),
  page('organizations', Building2, 'o', 'admin:read', () => import('./pages/organizations/organizations.tsx')),
  page('system', Settings, 's', 'admin:read', () => import('./pages/system/system.tsx')),
  // Last, because its path is the beginning of all others.
  page('overview', Activity, 'h', 'user:read', () => import('./pages/overview/overview.tsx'), '/'),
]
