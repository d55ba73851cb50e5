# SPDX-License-Identifier: Apache-2.0
"""A wheel for every Python 3, with a library for one platform, which python/make_wheel.py names in $XFP_PLATFORM."""
import os

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel


class PlatformDistribution(Distribution):
    def has_ext_modules(self):
        return True


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", os.environ["XFP_PLATFORM"]


setup(distclass=PlatformDistribution, cmdclass={"bdist_wheel": PlatformWheel})
