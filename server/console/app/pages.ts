import {
  Activity,
  Bot,
  Boxes,
  Building2,
  ChartColumn,
  Images,
  ListChecks,
  type LucideIcon,
  Network,
  Play,
  Settings,
} from 'lucide-react'
import type { ComponentType } from 'react'
import type { Scope } from './api/client.ts'
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
  /** The page's own chunk. */
  load: () => Promise<{ default: ComponentType }>
}

/** All pages in the order of the navigation. */
export const pages: readonly Page[] = [
  {
    path: '/playground',
    name: shellText.pages.playground,
    icon: Play,
    key: 'p',
    scope: 'user:write',
    load: () => import('./pages/playground/playground.tsx'),
  },
  {
    path: '/models',
    name: shellText.pages.models,
    icon: Bot,
    key: 'm',
    scope: 'user:read',
    load: () => import('./pages/models/models.tsx'),
  },
  {
    path: '/jobs',
    name: shellText.pages.jobs,
    icon: ListChecks,
    key: 'j',
    scope: 'user:read',
    load: () => import('./pages/jobs/jobs.tsx'),
  },
  {
    path: '/workflows',
    name: shellText.pages.workflows,
    icon: Network,
    key: 'w',
    scope: 'user:read',
    load: () => import('./pages/workflows/workflows.tsx'),
  },
  {
    path: '/executions',
    name: shellText.pages.executions,
    icon: Boxes,
    key: 'e',
    scope: 'user:read',
    load: () => import('./pages/executions/executions.tsx'),
  },
  {
    path: '/library',
    name: shellText.pages.library,
    icon: Images,
    key: 'l',
    scope: 'user:read',
    load: () => import('./pages/library/library.tsx'),
  },
  {
    path: '/usage',
    name: shellText.pages.usage,
    icon: ChartColumn,
    key: 'u',
    scope: 'user:read',
    load: () => import('./pages/usage/usage.tsx'),
  },
  {
    path: '/organizations',
    name: shellText.pages.organizations,
    icon: Building2,
    key: 'o',
    scope: 'admin:read',
    load: () => import('./pages/organizations/organizations.tsx'),
  },
  {
    path: '/system',
    name: shellText.pages.system,
    icon: Settings,
    key: 's',
    scope: 'admin:read',
    load: () => import('./pages/system/system.tsx'),
  },
  // Last, because its path is the beginning of all others.
  {
    path: '/',
    name: shellText.pages.overview,
    icon: Activity,
    key: 'h',
    scope: 'user:read',
    load: () => import('./pages/overview/overview.tsx'),
  },
]
